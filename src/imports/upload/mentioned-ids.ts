import { isImportableId } from '../parse/row/validate-person.js';

/** Separators of cells in any dialect, of providers in a cell, and of texts in JSON. */
const BETWEEN = /[,;|\t\r\n"]/;

/** Invisible characters, with which an id may be padded. */
const INVISIBLE = /\p{Cf}/gu;

/** Everything in some texts that may be an external id: whole lines, and each part of them that could be a cell. */
export function mentionedIds(texts: readonly string[]): Set<string> {
  const found = new Set<string>();
  for (const text of texts) {
    for (const part of [text, ...text.split(BETWEEN)]) {
      for (const id of [part.trim(), part.replace(INVISIBLE, '').trim()]) if (isImportableId(id)) found.add(id);
    }
  }
  return found;
}
