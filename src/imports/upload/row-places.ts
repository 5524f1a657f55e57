import type { SealedPlace } from '../../vault/vault.js';

/** The place of the data of a row about a person, who may be new, or be renamed before the row is applied. */
export function rowPlace(importId: string, rowNo: number, column: 'profile' | 'cells'): SealedPlace {
  return { table: 'import_rows', column, row: `${importId}/${rowNo}` };
}

/** The place of stored records. */
export function recordsPlace(importId: string, blockNo: number): SealedPlace {
  return { table: 'import_records', column: 'sealed', row: `${importId}/${blockNo}` };
}
