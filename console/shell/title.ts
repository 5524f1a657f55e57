import type { PageEntry } from './pages.js';

/** What one thing of a page is called, by what its address has below the page's. */
const DETAILS: Readonly<Record<string, (id: string) => string | undefined>> = {
  '/imports': (id) => (id === 'new' ? 'Import files' : `Import ${id}`),
  // Whose page it is stays out: a title stands in the browser's history, on shared screens and in lists of windows.
  '/people': (id) => ({ client: 'Client', provider: 'Provider' })[id.split('/')[0] ?? ''],
  '/sessions': (id) => `Session ${id}`,
  '/deliveries': (id) => (id === 'refused' ? 'Refused requests' : `Delivery ${id}`),
};

/** The title of an address, which tells a list from each thing in it. @param at below /console */
export function titleOf({ path, title }: PageEntry, at: string): string {
  const id = at.slice(path.length + 1);
  const detail = id && DETAILS[path]?.(id);
  return [detail, title, 'notebridge'].filter(Boolean).join(' · ');
}
