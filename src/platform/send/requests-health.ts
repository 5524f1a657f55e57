import type { Pool } from 'pg';
import type { healthOf } from '../../http/server/health-indicator.js';
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
): Promise<{ facts: { unknown: number }; reasons: Parameters<typeof healthOf>[1] }> {
  const { rows } = await sql.query<{ unknown: number; refused: boolean; lost: boolean; overdue: boolean }>(
    `SELECT count(*) FILTER (WHERE state = 'Unknown')::int AS unknown,
       bool_or(state = 'Requested' AND fault = 'platform-unauthorized') AS refused,
       bool_or(state = 'Requested' AND fault = 'platform-address') AS lost,
       bool_or(state = 'Requested' AND ${since} < now() - interval '5 minutes') AS overdue
     FROM ${table} WHERE state IN ('Requested', 'Unknown')`,
  );
  const { unknown = 0, refused, lost, overdue } = rows[0] ?? {};
  const reasons = {
    [`The platform rejects the key for ${operation}. Check PLATFORM_API_KEY; requests wait until it is accepted.`]:
      refused,
    [`The platform has no ${operation} at its URL. Check PLATFORM_BASE_URL, and the path in PLATFORM_CONTRACT; requests wait until it answers.`]:
      lost,
    [`Requests of ${operation} have waited for more than five minutes.`]: overdue,
  };
  return { facts: { unknown }, reasons };
}
