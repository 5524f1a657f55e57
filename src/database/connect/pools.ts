import { Logger } from '@nestjs/common';
import pg from 'pg';
import { sessionConfig } from './session.js';
import { TimedClient } from './timed-client.js';

/** How long a request waits for a free connection before it fails. */
const CONNECT_TIMEOUT_MS = 5_000;

/** PostgreSQL's timeouts of statements and idle transactions, for all that is not about many rows. */
export const USUAL = { statementMs: 10_000, idleMs: 10_000 };

/** How long after its timeout a statement without an answer shows that the connection is lost, as after a failover. */
const SILENT_AFTER_MS = 2_000;

/** Timeout for the answer to a usual statement. */
export const ANSWER_TIMEOUT_MS = USUAL.statementMs + SILENT_AFTER_MS;

/** Idle time before the first TCP keep-alive probe. */
const KEEP_ALIVE_MS = 5_000;

/** SQLSTATE of a server that rejects a write, because it is no longer the primary. */
const DEMOTED = '25006';

/** How often to open the lost connections of a pool that keeps them. */
const REOPEN_MS = 1_000;

/** Time between two log lines about lost connections of the same pool, because an outage loses all of them. */
const QUIET_MS = 60_000;

const openClients = new WeakMap<pg.Pool, Set<pg.PoolClient>>();

/**
 * Creates a pool that survives lost connections: it replaces idle ones, and a used one fails its next statement.
 *
 * @param settings of its connections
 */
export function newPool(
  {
    connectionString: url,
    statement_timeout = 0,
    idle_in_transaction_session_timeout = 0,
    ...config
  }: pg.PoolConfig & { application_name: string },
  settings: Record<string, string> = {},
): pg.Pool {
  const log = new Logger('Database');
  const all = {
    ...settings,
    statement_timeout: String(statement_timeout),
    idle_in_transaction_session_timeout: String(idle_in_transaction_session_timeout),
  };
  const pool = new pg.Pool({ Client: TimedClient, keepAlive: true, ...config, ...sessionConfig(url, all) });
  let quietUntilMs = 0;
  pool.on('error', ({ message }) => {
    if (pool.ending || performance.now() < quietUntilMs) return;
    quietUntilMs = performance.now() + QUIET_MS;
    log.warn(`idle connections (${config.application_name}) were lost and are replaced: ${message}`);
  });
  const clients = new Set<pg.PoolClient>();
  openClients.set(pool, clients);
  pool.on('remove', (client) => clients.delete(client));
  pool.on('connect', (client) => {
    clients.add(client);
    // Without this listener, a connection error between two statements of a transaction would crash the process.
    client.on('error', () => undefined);
    client.connection.on('errorMessage', ({ code = '' }: { code?: string }) => {
      if (code === DEMOTED) discardConnections(pool);
    });
  });
  return pool;
}

/** Ends every connection of a pool whose server is no longer the primary. A new one may reach the successor. */
export function discardConnections(pool: pg.Pool): void {
  for (const client of openClients.get(pool) ?? []) {
    client.connection.stream.destroy();
    // Otherwise the pool hands out an idle one until its socket has closed. The code makes a running statement fail as rejected.
    client.emit('error', Object.assign(new Error('the server is no longer the primary'), { code: DEMOTED }));
  }
}

/**
 * Opens all connections of a pool, and lost ones again, so that its user never competes for a connection with other work.
 * A connection that cannot be opened is tried again every second.
 */
export async function keepOpen(pool: pg.Pool): Promise<void> {
  const open = async () => {
    const missing = pool.options.max - pool.totalCount;
    if (missing <= 0) return;
    const wanted = Array.from({ length: missing + pool.idleCount }, () => pool.connect());
    for (const each of await Promise.allSettled(wanted)) if (each.status === 'fulfilled') each.value.release();
  };
  const timer = setInterval(() => (pool.ending ? clearInterval(timer) : void open()), REOPEN_MS).unref();
  await open();
}

/** A pool of a process. @param statementMs of a statement @param idleMs of an idle transaction, whose locks end then */
export function poolOf(
  url: string,
  { statementMs, idleMs, ...sizes }: pg.PoolConfig & { statementMs: number; idleMs: number },
): pg.Pool {
  return newPool({
    ...sizes,
    connectionString: url,
    connectionTimeoutMillis: CONNECT_TIMEOUT_MS,
    query_timeout: statementMs + SILENT_AFTER_MS,
    statement_timeout: statementMs,
    idle_in_transaction_session_timeout: idleMs,
    keepAliveInitialDelayMillis: KEEP_ALIVE_MS,
    application_name: 'notebridge',
  });
}
