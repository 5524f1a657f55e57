import { type BackendFactory, PostgresConnection, PostgresQueueBackend, Queue, setDefaultBackendFactory } from 'bullmq';
import type pg from 'pg';
import type { Clock } from '../../config/clock.js';
import { PRODUCER_CONNECTIONS, WORKER_CONNECTIONS } from '../../database/connect/connection-shares.js';
import { ANSWER_TIMEOUT_MS, newPool } from '../../database/connect/pools.js';
import { CalmWorker } from './calm-worker.js';
import { ADD_TIMEOUT_MS } from './work-queue.js';
import { type JobQueue, type RowJob, WorkStore } from './work-store.js';

/**
 * How long a connection may be idle. Longer than an idle worker waits between two statements, because a new connection
 * costs both sides more CPU than everything else that an idle process does.
 */
const IDLE_CONNECTION_MS = 30_000;

const CONNECT_TIMEOUT_MS = 5_000;
const KEEP_ALIVE_MS = 5_000;

/** The start has checked the tables. BullMQ would check again, and keep a failure for ever. */
class PreparedConnection extends PostgresConnection {
  private readonly watched = new WeakSet<object>();

  override async waitUntilReady(): Promise<void> {}

  /** BullMQ opens another client after an error. pg emits none for one that ends because an answer is overdue. */
  override async getListenClient() {
    const client = await super.getListenClient();
    if (!this.watched.has(client)) {
      this.watched.add(client);
      const events = client as unknown as pg.Client;
      events.once('end', () => events.emit('error', new Error('the connection that listens for jobs has ended')));
    }
    return client;
  }
}

const postgresBackend: BackendFactory = (name, options) =>
  new PostgresQueueBackend(new PreparedConnection(options.connection as never), name, options as never);

/** BullMQ on PostgreSQL. */
export class PostgresWorkStore extends WorkStore {
  readonly workerClass = CalmWorker;
  readonly workerOptions;
  private readonly workers: pg.Pool;
  private readonly producers: pg.Pool;

  /** @param url of the runtime role; its options apply, except for the schema of BullMQ */
  constructor(url: string, clock: Clock) {
    super(clock, 'DATABASE_URL');
    setDefaultBackendFactory(postgresBackend);
    this.workers = this.pool(url, WORKER_CONNECTIONS, CONNECT_TIMEOUT_MS, ANSWER_TIMEOUT_MS);
    this.producers = this.pool(url, PRODUCER_CONNECTIONS, ADD_TIMEOUT_MS, ADD_TIMEOUT_MS);
    this.workerOptions = { connection: this.workers as never };
  }

  open(name: string): JobQueue {
    return new Queue<RowJob, void, string>(name, { connection: this.producers as never });
  }

  async close(): Promise<void> {
    await Promise.all([this.workers.end(), this.producers.end()]);
  }

  private pool(url: string, max: number, connectionTimeoutMillis: number, query_timeout: number): pg.Pool {
    const pool = newPool(
      {
        connectionString: url,
        max,
        connectionTimeoutMillis,
        query_timeout,
        idleTimeoutMillis: IDLE_CONNECTION_MS,
        keepAliveInitialDelayMillis: KEEP_ALIVE_MS,
        application_name: 'notebridge-queues',
      },
      // A crash of PostgreSQL may lose jobs, which the feeder adds again, so no statement of a queue waits for the disk.
      { search_path: 'bullmq', synchronous_commit: 'off' },
    );
    // Every queue and worker on it adds a listener.
    pool.setMaxListeners(0);
    return pool;
  }
}
