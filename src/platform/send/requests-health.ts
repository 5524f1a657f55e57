import type { Pool } from 'pg';
import type { Reason } from '../../monitoring/health-indicator.js';
import type { OperationName } from '../contract/operations.js';

/** A table of requests that are sent once. */
interface Requests {
  readonly table: string;
  /** The column with the time of the request. */
  readonly since: string;
  readonly operation: OperationName;
}

/** The health of requests that are sent once: they wait while the URL or the API key stops their operation. */
export async function requestsHealth(
  sql: Pick<Pool, 'query'>,
  { table, since, operation }: Requests,
): Promise<Reason[]> {
  const { rows } = await sql.query<{ refused: boolean; lost: boolean; overdue: boolean }>(
    `SELECT bool_or(fault = 'platform-unauthorized') AS refused, bool_or(fault = 'platform-address') AS lost,
       bool_or(${since} < now() - interval '5 minutes') AS overdue
     FROM ${table} WHERE state = 'Requested'`,
  );
  const { refused, lost, overdue } = rows[0] ?? {};
  const values = { operations: operation };
  return [
    ...(refused ? [{ code: 'platform-unauthorized' as const, values }] : []),
    ...(lost ? [{ code: 'platform-address' as const, values }] : []),
    ...(overdue ? [{ code: 'requests-late' as const, values, follows: true }] : []),
  ];
}
