import type pg from 'pg';

/**
 * The limits for connections of the current role, without those of others, and what the running processes of this service
 * may open: each tells it in the name of its heartbeat's connection.
 */
const LIMITS = `
  WITH sessions AS (
    SELECT datname = current_database() AS here, usename = current_user AS same, application_name AS name
    FROM pg_stat_activity WHERE backend_type = 'client backend'
  ), processes AS (
    SELECT split_part(name, ' ', 2)::int AS connections FROM sessions
    WHERE here AND same AND name ~ '^notebridge-heartbeat [0-9]+$'
  )
  SELECT (SELECT count(*)::int FROM processes) AS processes,
    (SELECT coalesce(sum(connections), 0)::int FROM processes) AS connections,
    current_setting('max_connections')::int - current_setting('superuser_reserved_connections')::int
      - coalesce(current_setting('reserved_connections', true)::int, 0)
      - (SELECT count(*) FILTER (WHERE NOT (here AND same))::int FROM sessions) AS server,
    (SELECT datconnlimit - (SELECT count(*) FILTER (WHERE here AND NOT same)::int FROM sessions)
     FROM pg_database WHERE datname = current_database() AND datconnlimit >= 0) AS database,
    (SELECT rolconnlimit - (SELECT count(*) FILTER (WHERE same AND NOT here)::int FROM sessions)
     FROM pg_roles WHERE rolname = current_user AND rolconnlimit >= 0 AND NOT rolsuper) AS role`;

interface ConnectionLimits {
  readonly processes: number;
  /** Of all running processes. */
  readonly connections: number;
  readonly server: number;
  /** Null without a limit. */
  readonly database: number | null;
  readonly role: number | null;
}

export async function readConnectionLimits(client: pg.Client): Promise<ConnectionLimits> {
  return (await client.query<ConnectionLimits>(LIMITS)).rows[0] as ConnectionLimits;
}

/**
 * Compares what all processes may open with the limits.
 *
 * @param more connections of a process that is not running yet
 * @returns a sentence if a limit is lower
 */
export function connectionFault(limits: ConnectionLimits, more: number): string | undefined {
  const processes = limits.processes + (more > 0 ? 1 : 0);
  const needed = limits.connections + more;
  const named: [number | null, string][] = [
    [limits.role, 'the role of DATABASE_URL (ALTER ROLE … CONNECTION LIMIT)'],
    [limits.database, 'the database (ALTER DATABASE … CONNECTION LIMIT)'],
    [limits.server, 'the server (max_connections, less what is reserved and what others use)'],
  ];
  const [most, what] = named.find(([limit]) => limit !== null && limit < needed) ?? [];
  if (what === undefined) return undefined;
  const who = processes === 1 ? 'This process may open' : `${processes} processes of this service may open`;
  return `${who} ${needed} connections to PostgreSQL, but ${what} allows ${most}. Lower DATABASE_CONNECTIONS, or raise the limit.`;
}
