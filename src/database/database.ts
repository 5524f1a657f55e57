import { Injectable, Logger, type OnApplicationShutdown } from '@nestjs/common';
import pg from 'pg';
import { parseUrl } from '../config/setting-rules.js';
import { codeOf } from '../http/problem/fault.js';

/** Milliseconds to wait for a free connection before a request fails instead of hanging. */
const CONNECT_TIMEOUT_MS = 5_000;

/** A pool's connections, and the milliseconds after which PostgreSQL ends a statement or an idle transaction of theirs. */
const USUAL = { max: 16, statementMs: 10_000, idleMs: 10_000 };
/** For statements over many rows. A connection is used once: one that is idle may have died without a word. */
const BULK = { max: 3, maxUses: 1, statementMs: 10 * 60_000, idleMs: 30_000 };

/** Milliseconds beyond a statement's limit after which its connection has died without a word, as after a failover. */
const SILENT_AFTER_MS = 2_000;

/** Milliseconds after which the answer to a statement of the usual length counts as lost. */
export const ANSWER_TIMEOUT_MS = USUAL.statementMs + SILENT_AFTER_MS;

/** Milliseconds of idleness after which the system itself looks whether the other side is there. */
const KEEP_ALIVE_MS = 5_000;

/** Milliseconds between two looks for bulk statements whose connection fell silent; it is cut at the second. */
const LOOK_MS = 3_000;

const APPLICATION = 'notebridge';

/**
 * Settings of every connection, so that no default of a role or database can change an outcome: the rate limit needs
 * READ COMMITTED, for example. A pool sets its own timeouts; others would cut off long statements and waits for locks.
 */
const SESSION_SETTINGS = {
  default_transaction_isolation: 'read committed',
  search_path: 'public',
  TimeZone: 'UTC',
  DateStyle: 'ISO,MDY',
  IntervalStyle: 'postgres',
  extra_float_digits: '1',
  bytea_output: 'hex',
  standard_conforming_strings: 'on',
  statement_timeout: '0',
  lock_timeout: '0',
  idle_in_transaction_session_timeout: '0',
  jit: 'off', // compiling costs more than statements as short as these
};

/** Turns off the timeouts that not every version of PostgreSQL has; an unknown option would fail the connection. */
const DISABLE_NEWER_TIMEOUTS = `
  SELECT set_config(name, '0', false) FROM pg_settings WHERE name IN ('transaction_timeout', 'idle_session_timeout')`;

/** SQLSTATEs of transactions that had no effect and can run again: serialization_failure, deadlock_detected. */
const RETRIED = ['40001', '40P01'];
const MAX_TRIES = 4;

/** The processes of the server that work on a statement, and are not held up by a client that takes nothing. */
const AT_WORK = `
  SELECT pid FROM pg_stat_activity WHERE pid = ANY ($1::int[])
    AND state = 'active' AND wait_event IS DISTINCT FROM 'ClientWrite'`;

/** Ends what a connection left behind on the server, with its locks; pids may be used again, by other clients. */
const END = `
  SELECT pg_terminate_backend(pid) FROM pg_stat_activity
  WHERE pid = ANY ($1::int[]) AND usename = current_user AND application_name = $2 AND state <> 'active'`;

/** The open statement of a connection, which pg keeps private; undefined for a stream, because its reader sets its pace. */
function openStatement(client: pg.Client): pg.Query | undefined {
  const active: unknown = Reflect.get(client, '_activeQuery');
  return active instanceof pg.Query ? active : undefined;
}

/** The server's process of a connection. */
const pidOf = (client: pg.Client) => Number(Reflect.get(client, 'processID'));

/**
 * Finds connections that died without a word while they wait for a long statement: asked over another connection, the
 * server does not know the statement, or has ended it. A timeout would have to be as long as the longest statement.
 */
class SilenceWatch {
  private readonly clients = new Set<pg.Client>();
  /** The statements that were open at the last look, and on which the server did not work. */
  private suspects = new Set<pg.Query>();

  /** @param sql another connection to the server, whose own silence is bounded */
  constructor(private readonly sql: Pick<pg.Pool, 'query'>) {}

  follow(client: pg.Client): void {
    this.clients.add(client);
    client.once('end', () => this.clients.delete(client));
  }

  /** Looks once. Cuts connections whose statement was suspect at the last look, too: an answer may be on its way. */
  async look(): Promise<void> {
    const waiting = [...this.clients].flatMap((client) => {
      const statement = openStatement(client);
      return statement ? { client, statement, pid: pidOf(client) } : [];
    });
    if (waiting.length === 0) return this.suspects.clear();
    const { rows } = await this.sql.query<{ pid: number }>(AT_WORK, [waiting.map(({ pid }) => pid)]);
    const atWork = new Set(rows.map(({ pid }) => pid));
    const silent = waiting.filter(
      ({ client, statement, pid }) => !atWork.has(pid) && openStatement(client) === statement,
    );
    const cut = silent.filter(({ statement }) => this.suspects.has(statement));
    this.suspects = new Set(silent.map(({ statement }) => statement));
    for (const { client } of cut) client.connection.stream.destroy();
    if (cut.length > 0) await this.sql.query(END, [cut.map(({ pid }) => pid), APPLICATION]);
  }
}

/**
 * PostgreSQL for the workers and the API: plain SQL where exact statements count. A connection that dies without a word
 * costs a statement `ANSWER_TIMEOUT_MS`, one over many rows two looks, and is not used again; the locks of its
 * transaction end on the server's side.
 */
@Injectable()
export class Database implements OnApplicationShutdown {
  readonly pool: pg.Pool;
  /** For statements over many rows, such as those of imports, which may take minutes. */
  readonly bulkPool: pg.Pool;
  /** Of the bulk connections. */
  readonly silence: SilenceWatch;
  private readonly looking: NodeJS.Timeout;
  private readonly beforeEnds = new WeakMap<pg.PoolClient, () => Promise<void>>();

  /** @param url of the runtime role */
  constructor(readonly url: string) {
    this.pool = poolOf(url, USUAL);
    this.bulkPool = poolOf(url, BULK);
    this.silence = new SilenceWatch(this.pool);
    this.bulkPool.on('connect', (client) => this.silence.follow(client as pg.ClientBase as pg.Client));
    // What keeps the look from its answer is reported by those who use the pool.
    this.looking = setInterval(() => void this.silence.look().catch(() => undefined), LOOK_MS).unref();
  }

  /**
   * Runs work in one READ COMMITTED transaction, and again after a deadlock or a serialization failure.
   *
   * @param work must not make HTTP calls (a transaction is short) and must bear to be run again
   * @param size bulk for work over many rows, which may take minutes
   */
  async transaction<T>(work: (tx: pg.PoolClient) => Promise<T>, size: 'usual' | 'bulk' = 'usual'): Promise<T> {
    const pool = size === 'bulk' ? this.bulkPool : this.pool;
    for (let tries = 1; ; tries++) {
      try {
        return await this.once(pool, work);
      } catch (error) {
        if (tries === MAX_TRIES || !RETRIED.includes(codeOf(error))) throw error;
      }
    }
  }

  private async once<T>(pool: pg.Pool, work: (tx: pg.PoolClient) => Promise<T>): Promise<T> {
    const tx = await pool.connect();
    let broken = false;
    try {
      await tx.query('BEGIN');
      const result = await work(tx).finally(() => this.leave(tx));
      await tx.query('COMMIT');
      return result;
    } catch (error) {
      broken = isStale(error) || !(await rolledBack(tx));
      throw error;
    } finally {
      tx.release(broken);
    }
  }

  /** Has `leave` run before the transaction that `tx` is in is committed or rolled back; a later one replaces it. */
  beforeEnd(tx: pg.PoolClient, leave: () => Promise<void>): void {
    this.beforeEnds.set(tx, leave);
  }

  private async leave(tx: pg.PoolClient): Promise<void> {
    const leave = this.beforeEnds.get(tx);
    this.beforeEnds.delete(tx);
    await leave?.();
  }

  async onApplicationShutdown(): Promise<void> {
    clearInterval(this.looking);
    await Promise.all([this.pool.end(), this.bulkPool.end()]);
  }
}

function poolOf(url: string, { statementMs, idleMs, ...sizes }: pg.PoolConfig & typeof USUAL): pg.Pool {
  return newPool({
    ...sizes,
    connectionString: url,
    connectionTimeoutMillis: CONNECT_TIMEOUT_MS,
    query_timeout: statementMs + SILENT_AFTER_MS,
    statement_timeout: statementMs,
    // Whose other side is gone holds its locks no longer.
    idle_in_transaction_session_timeout: idleMs,
    keepAliveInitialDelayMillis: KEEP_ALIVE_MS,
    application_name: APPLICATION,
  });
}

/**
 * Connection settings for a URL. Options in the URL win over `SESSION_SETTINGS`, because an operator wrote them for this
 * service.
 */
export function sessionConfig(url = '') {
  const settings = Object.entries(SESSION_SETTINGS).map(([name, value]) => `-c ${name}=${value.replace(' ', '\\ ')}`);
  const address = parseUrl(url);
  const own = address?.searchParams.get('options') ?? '';
  if (own !== '') address?.searchParams.delete('options'); // options in a connection string would replace these
  return {
    connectionString: own === '' ? url : address?.toString(),
    options: [...settings, own].join(' ').trim(),
    onConnect: disableNewerTimeouts,
  };
}

/** Runs after each connect. */
export async function disableNewerTimeouts(client: pg.ClientBase): Promise<void> {
  await client.query(DISABLE_NEWER_TIMEOUTS);
}

/** A pool whose connections may die: an idle one is replaced, one in use fails its next statement. */
export function newPool(config: pg.PoolConfig & { application_name: string }): pg.Pool {
  const log = new Logger(Database.name);
  const pool = new pg.Pool({ keepAlive: true, ...config, ...sessionConfig(config.connectionString) });
  pool.on('error', ({ message }) => {
    if (!pool.ending) log.warn(`an idle connection (${config.application_name}) was lost: ${message}`);
  });
  // What befalls a connection between two statements of a transaction is reported to this listener alone; without one
  // the process would end.
  pool.on('connect', (client) => client.on('error', () => undefined));
  return pool;
}

/** No statement comes through any more on a connection whose last one got no answer (node-postgres' own words). */
const isStale = (error: unknown): boolean => error instanceof Error && error.message === 'Query read timeout';

async function rolledBack(tx: pg.PoolClient): Promise<boolean> {
  const done = await tx.query('ROLLBACK').catch(() => undefined);
  return done !== undefined;
}

/** Runs work on a connection of its own, outside every pool: for what is done once, at start. */
export async function withClient<T>(url: string, work: (client: pg.Client) => Promise<T>): Promise<T> {
  const client = new pg.Client({ ...sessionConfig(url), connectionTimeoutMillis: 10_000 });
  // Reported to this listener alone where no statement waits; without one the process would end.
  let loss: Error | undefined;
  client.on('error', (error) => {
    loss ??= error;
  });
  await client.connect();
  const failed = (error: unknown) => {
    throw loss ?? error;
  };
  return disableNewerTimeouts(client)
    .then(() => work(client))
    .catch(failed)
    .finally(() => client.end());
}
