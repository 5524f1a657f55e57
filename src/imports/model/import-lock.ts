import type { PoolClient } from 'pg';

/** Any fixed number: whoever holds this lock plans, applies or takes back, so that imports come one after the other. */
export const ORDER_LOCK = 727_002;

/** Whether this transaction alone may change what imports want, until its end. */
export async function isFirst(tx: PoolClient): Promise<boolean> {
  const { rows } = await tx.query<{ mine: boolean }>('SELECT pg_try_advisory_xact_lock($1) AS mine', [ORDER_LOCK]);
  return rows[0]?.mine ?? false;
}

/** Waits until it is so. To be called before anything else is locked. */
export async function lockImport(tx: PoolClient): Promise<void> {
  await tx.query('SELECT pg_advisory_xact_lock($1)', [ORDER_LOCK]);
}
