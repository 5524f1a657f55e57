import { parseRaw } from '../parse/row/import-row.js';
import { isImportableId } from '../parse/row/validate-person.js';

/** What stands between cells in any dialect that is read, between providers, and around texts in JSON. */
const BETWEEN = /[,;|\t\r\n"]/;

/** Invisible characters, which an id may have been padded with. */
const INVISIBLE = /\p{Cf}/gu;

/**
 * Every external id that a row may name, wherever it stands: each cell whole, and each part of it that would be a cell
 * if the quotes or the delimiters were others. Of a row that can't be read nobody knows which cell is which.
 *
 * @param raw see `parse/row/import-row.ts`
 */
export function mentionedIds(raw: string): Set<string> {
  const { cells, text } = parseRaw(raw);
  return idsIn([...cells, text]);
}

/** Those that stand in cells of several lines. */
export function idsInLongCells(raw: string): Set<string> {
  return idsIn(parseRaw(raw).cells.filter((cell) => /[\r\n]/.test(cell)));
}

function idsIn(texts: readonly string[]): Set<string> {
  const found = new Set<string>();
  for (const cell of texts) {
    for (const part of [cell, ...cell.split(BETWEEN)]) {
      for (const id of [part.trim(), part.replace(INVISIBLE, '').trim()]) if (isImportableId(id)) found.add(id);
    }
  }
  return found;
}
