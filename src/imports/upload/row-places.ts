import type { SealedPlace } from '../../vault/vault.js';

/** The place of a row's profile: its person may be new, or renamed before the row is applied. */
export function profilePlace(importId: string, rowNo: number): SealedPlace {
  return { table: 'import_rows', column: 'profile', row: `${importId}/${rowNo}` };
}

/** The place of a block of raw rows. */
export function rawPlace(importId: string, firstRow: number): SealedPlace {
  return { table: 'import_raw_rows', column: 'sealed', row: `${importId}/${firstRow}` };
}
