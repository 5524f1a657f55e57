import type { Field, FileKind } from '../row/import-row.js';

/**
 * The fields that a file must have a column for. A file without names that links people to platform users needs no more,
 * because it can only name people who are known.
 *
 * @param settled fields that have a column, or may have several
 */
export function requiredFields(kind: FileKind, settled: ReadonlySet<unknown>): Field[] {
  const identity: Field[] = kind === 'both' ? ['kind', 'externalId'] : ['externalId'];
  if (settled.has('platformUserId') && !NAMES.some((field) => settled.has(field))) return identity;
  return [...identity, ...NAMES, ...(kind === 'providers' ? (['email'] as const) : [])];
}

const NAMES: readonly Field[] = ['firstName', 'lastName'];
const isName = (field: Field) => NAMES.includes(field);

/** True if a column with these filled cells could contain a field. */
function couldBe(field: Field, cells: readonly string[], rows: number): boolean {
  if (field === 'email') return cells.some((cell) => cell.includes('@'));
  if (isName(field)) return cells.some((cell) => /\p{L}/u.test(cell) && !/[@\d]/.test(cell));
  return field === 'externalId' && cells.length > rows / 2;
}

/**
 * True if columns without a field could contain all missing fields, so that it is worth asking.
 *
 * @param unmapped the filled cells of each column
 */
export function couldContain(
  missing: readonly Field[],
  unmapped: readonly (readonly string[])[],
  rows: number,
): boolean {
  // First and last name need two columns.
  const names = missing.filter(isName).length;
  return missing.every((field) => {
    const possible = unmapped.filter((cells) => couldBe(field, cells, rows)).length;
    return possible >= (isName(field) ? names : 1);
  });
}
