import type { Field, FileKind } from '../row/import-row.js';

/** The fields that a file must have a column for. */
export function requiredFields(kind: FileKind): Field[] {
  const fields: Field[] = ['externalId', 'firstName', 'lastName'];
  if (kind === 'both') return ['kind', ...fields];
  return kind === 'providers' ? [...fields, 'email'] : fields;
}

const isName = (field: Field) => field === 'firstName' || field === 'lastName';

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
