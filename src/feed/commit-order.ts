import type { Database } from '../database/database.js';

/** The statements that number the rows of a table. */
interface Numbering {
  /** Any fixed number: the key of the advisory lock under which rows are numbered. */
  readonly lock: number;
  /** SELECT that returns a row if any committed row has no number. */
  readonly pending: string;
  /** UPDATE that numbers the oldest rows without a number, at most $1, above all numbers given so far. */
  readonly assign: string;
}

/**
 * Numbers committed rows in the order in which they became visible. Writers take no lock. Numbers that writers draw
 * themselves would let readers miss rows, because transactions commit in another order than they write.
 *
 * @param max rows, so that the first reader after a long time gets a quick answer
 * @returns true if rows without a number may be left
 */
export async function numberCommitted(
  database: Database,
  { lock, pending, assign }: Numbering,
  max: number,
): Promise<boolean> {
  const { rowCount } = await database.pool.query(pending);
  if (rowCount === 0) return false;
  return database.transaction(async (tx) => {
    // A separate statement, because the next one must see what the last holder of the lock committed.
    await tx.query('SELECT pg_advisory_xact_lock($1)', [lock]);
    return (await tx.query(assign, [max])).rowCount === max;
  });
}
