import { createHash } from 'node:crypto';
import { withoutPadding } from './csv-header.js';

/** Characters of a check. */
const LENGTH = 12;

/**
 * A check of a rejected row's own cells, by which it is known when it comes back as it was. Blanks around cells, empty
 * cells at the end and the kind of line ends make no difference, since a spreadsheet changes them. Letters only: digits
 * would become a number there.
 */
export function rowCheck(cells: readonly string[]): string {
  const own = withoutPadding(cells).map((cell) => cell.replaceAll('\r\n', '\n').trim());
  const digest = createHash('sha256').update(JSON.stringify(own)).digest();
  return [...digest.subarray(0, LENGTH)].map((byte) => String.fromCharCode(97 + (byte % 26))).join('');
}
