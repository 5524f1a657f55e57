import type { PoolClient } from 'pg';
import { isUniqueViolation } from '../../errors/error-code.js';

/** A table of requests and their results on the platform. An event may have made a row without a request. */
export interface RequestTable {
  readonly name: 'sessions' | 'compliance_jobs';
  /** SQL of the columns of a row `t`, with the names of its fields. */
  readonly columns: string;
  /** The lane of requests that must be sent. */
  readonly lane: number;
  /** The column with the platform's id. */
  readonly platformId: 'session_id' | 'job_id';
}

/** Tries of a transaction that meets the row of an event, which another process adds at the same time. */
const MAX_TRIES = 3;

/** Runs a transaction again that met the row of an event, which another process adds at the same time. */
export async function retryWhenTaken<T>(work: () => Promise<T>): Promise<T> {
  for (let tries = 1; ; tries += 1) {
    try {
      return await work();
    } catch (error) {
      if (tries === MAX_TRIES || !isUniqueViolation(error)) throw error;
    }
  }
}

/**
 * Finds and locks the other row with a platform id, which an event made before the id of the request's session or job was
 * known.
 *
 * @param own the request's row, locked
 * @returns `taken` if that row belongs to another request
 */
export async function rowOfEvent<Row extends { attemptedAt: Date | null }>(
  tx: PoolClient,
  { name, columns, platformId: column }: RequestTable,
  own: { id: string },
  platformId: string,
): Promise<Row | 'taken' | undefined> {
  const { rows } = await tx.query<Row>(
    `SELECT ${columns} FROM ${name} t WHERE ${column} = $1 AND id <> $2 FOR UPDATE`,
    [platformId, own.id],
  );
  return rows[0] && (rows[0].attemptedAt === null ? rows[0] : 'taken');
}
