import { Problem } from '../../http/problem/problem.js';
import type { ReadEvent } from '../parse/row/import-row.js';

type Page = Omit<Extract<ReadEvent, { type: 'page' }>, 'type'> & { file: string };

/** The pages of searches among the Bundles of an import. Pages that link to each other are one export. */
export class Pages {
  private readonly pages: Page[] = [];

  add(file: string, { self, next, previous }: Omit<Page, 'file'>): void {
    if (next || previous) this.pages.push({ file, self, next, previous });
    else if (self) this.pages.push({ file, self });
  }

  /** Checks that no page is missing, because a snapshot would delete everyone on it. @throws {Problem} 422 */
  check(): void {
    const selves = new Set(this.pages.map(({ self }) => self));
    const nexts = new Set(this.pages.map(({ next }) => next));
    const missing = this.pages.find(
      ({ self, next, previous }) => (next && !selves.has(next)) || (previous && !(self && nexts.has(self))),
    );
    if (!missing) return;
    const detail = `${missing.file} is one page of a search, and the page ${missing.next && !selves.has(missing.next) ? 'after' : 'before'} it is missing. People on it would count as missing: send all pages together, or import without mode=snapshot.`;
    throw new Problem('unreadable-file', detail, {
      extensions: { file: missing.file, line: 1, code: 'partial-bundle' },
    });
  }
}
