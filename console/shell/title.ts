import type { PageEntry } from './pages.js';

/** The titles of things, by their path below that of their page. */
const DETAILS: Readonly<Record<string, (id: string) => string | undefined>> = {
  '/imports': (id) => (id === 'new' ? 'Import files' : `Import ${id}`),
  // Without the id of the person, because titles appear in the browser's history and on shared screens.
  '/people': (id) => ({ client: 'Client', provider: 'Provider' })[id.split('/')[0] ?? ''],
  '/sessions': (id) => `Session ${id}`,
  '/compliance': (id) => `Compliance job ${id}`,
  '/deliveries': (id) => `Delivery ${id}`,
};

/** The title of a page or of a thing on it. @param at the path below /console */
export function titleOf({ path, title }: PageEntry, at: string): string {
  const id = at.slice(path.length + 1);
  const detail = id && DETAILS[path]?.(id);
  return [detail, title, 'notebridge'].filter(Boolean).join(' · ');
}
