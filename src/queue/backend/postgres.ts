import { PostgresConnection, PostgresQueueBackend, runMigrations } from 'bullmq';
import type pg from 'pg';
import { QUEUE_CONNECTIONS } from '../../database/connect/connection-shares.js';
import { ANSWER_TIMEOUT_MS, newPool } from '../../database/connect/pools.js';
import { withClient } from '../../database/connect/session.js';
import { QUEUE_NAMES, WORK_QUEUE_NAMES } from './queue-names.js';
import type { StoreBackend } from './store-backend.js';

/**
 * How long a connection may be idle. Longer than an idle worker waits between two statements, because a new connection
 * costs both sides more CPU than everything else that an idle process does.
 */
const IDLE_CONNECTION_MS = 30_000;

const CONNECT_TIMEOUT_MS = 5_000;
const KEEP_ALIVE_MS = 5_000;

/** One pool and one listening client for all queues and workers. BullMQ would open several for each. */
class SharedConnection extends PostgresConnection {
  private readonly listening = new WeakMap<object, Promise<unknown>>();

  constructor(pool: pg.Pool) {
    super(pool);
    this.setMaxListeners(0);
  }

  /** The start has checked the tables. BullMQ would check again, and keep a failure forever. */
  override async waitUntilReady(): Promise<void> {}

  /** Listens once for all workers, because pg deprecates a statement that is sent while another one runs. */
  override async getListenClient() {
    const client = await super.getListenClient();
    const listening = this.listening.get(client) ?? client.query('LISTEN bullmq_jobs');
    this.listening.set(client, listening);
    await listening.catch((error: unknown) => {
      this.listening.delete(client); // so that the next wait for a job listens again
      throw error;
    });
    return client;
  }
}

class SharedBackend extends PostgresQueueBackend {
  constructor(...parts: ConstructorParameters<typeof PostgresQueueBackend>) {
    super(...parts);
    // The connection listens. BullMQ resets this field when it needs a new client.
    Object.defineProperty(this, 'listening', { get: () => true, set: () => undefined });
  }

  /** The connection outlives each queue and worker. */
  override async close(): Promise<void> {}
}

/** BullMQ on PostgreSQL. @param url of the runtime role; its options apply, except for the schema of BullMQ */
export function postgresBackend(url: string): StoreBackend {
  const pool = newPool(
    {
      connectionString: url,
      max: QUEUE_CONNECTIONS,
      connectionTimeoutMillis: CONNECT_TIMEOUT_MS,
      idleTimeoutMillis: IDLE_CONNECTION_MS,
      query_timeout: ANSWER_TIMEOUT_MS,
      keepAliveInitialDelayMillis: KEEP_ALIVE_MS,
      application_name: 'notebridge-queues',
    },
    { search_path: 'bullmq' },
  );
  pool.on('connect', (client) => client.setMaxListeners(0));
  const connection = new SharedConnection(pool);
  return {
    options: { connection: pool as never },
    factory: (name, options) => new SharedBackend(connection, name, options as never),
    close: async () => {
      await connection.close();
      await pool.end();
    },
  };
}

/** @throws {Error} if the tables of the queues are missing */
export async function checkQueueTables(url: string): Promise<void> {
  const { rows } = await withClient(url, (client) =>
    client.query<{ isThere: boolean }>(`SELECT to_regnamespace('bullmq') IS NOT NULL AS "isThere"`),
  );
  if (!rows[0]?.isThere)
    throw new Error('The database has no tables for the queues: run migrate without REDIS_URL, or set REDIS_URL here.');
}

export async function createQueueTables(ownerUrl: string): Promise<void> {
  await withClient(ownerUrl, async (client) => {
    await runMigrations(client as unknown as Parameters<typeof runMigrations>[0]);
    // BullMQ makes a queue's sequence at its first job, which a role that owns nothing may not do. Its id is skipped.
    await client.query('SELECT bullmq.next_job_id(name) FROM unnest($1::text[]) AS name', [
      [...QUEUE_NAMES, ...WORK_QUEUE_NAMES],
    ]);
  });
}
