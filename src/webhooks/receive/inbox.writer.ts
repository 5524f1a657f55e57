import {
  Injectable,
  Logger,
  type OnApplicationShutdown,
  type OnModuleDestroy,
  type OnModuleInit,
} from '@nestjs/common';
import type pg from 'pg';
import { GroupCommit } from '../../audit/group-commit.js';
import { Clock } from '../../config/clock.js';
import { Env } from '../../config/env.js';
import { connectionShares } from '../../database/connect/connection-shares.js';
import { discardConnections, keepOpen, newPool } from '../../database/connect/pools.js';
import { isDatabaseUnavailable } from '../../errors/database-fault.js';
import { errorTrace } from '../../errors/error-trace.js';
import { type Health, HealthIndicator } from '../../monitoring/health-indicator.js';
import { Metrics } from '../../monitoring/metrics.js';
import { Contract } from '../../platform/contract/contract.js';
import type { WorkQueue } from '../../queue/work/work-queue.js';
import { WorkQueues } from '../../queue/work/work-queues.js';
import { type SealedPlace, Vault } from '../../vault/vault.js';
import { parseEvent } from './platform-event.js';
import type { VerifiedDelivery } from './verify-delivery.js';

/** The platform gives up after five seconds; 503 must leave within two. */
const LIMITS = {
  inFlight: 2, // while one waits for the disk, the next is being gathered and sent
  batch: { rows: 500, bytes: 8 * 1024 ** 2 },
  waiting: { rows: 10_000, bytes: 64 * 1024 ** 2 },
  deadlineMs: 1_800,
};

/** How long a statement may take before its connection counts as stuck and is destroyed. */
const STUCK_MS = 2_000;

/** How long a repeat waits for its row, which a replay of many deliveries locks. */
const LOCKED_MS = 300;

/** How long health remembers that a commit failed. Longer would keep away the requests that show that it works again. */
const FAILED_MS = 10_000;

/** Minimum time between two log lines about deliveries that were not stored. */
const QUIET_MS = 60_000;

/** Jobs that may be on their way to the store of the queues. The feeder adds those beyond them. */
const MAX_ADDING = 100;

/** A delivery as it is stored: the parameters of `INSERT`, in this order. */
type Row = [
  signature: Buffer,
  body: Buffer,
  sentAt: string,
  secretIndex: number,
  eventType: string | null,
  subject: string,
];

/**
 * One statement for a group, so one commit. Ids are in the order of arrival. A repeat is counted, and a delivery that ended
 * is due again. The order by signature prevents deadlocks of groups with the same deliveries. Returns the subjects of deliveries that it made due: others have a job, or
 * get one when they are due.
 */
const INSERT = `
  WITH arrived AS (
    SELECT DISTINCT ON (signature) *, count(*) OVER (PARTITION BY signature)::int - 1 AS repeats
    FROM (
      SELECT nextval('webhook_deliveries_id_seq') AS id, *
      FROM unnest($1::bytea[], $2::bytea[], $3::bigint[], $4::smallint[], $5::text[], $6::text[])
    ) AS a (id, signature, body, sent_at, secret_index, event_type, subject)
    ORDER BY signature, id
  )
  INSERT INTO webhook_deliveries AS d (id, signature, body, sent_at, secret_index, event_type, subject, repeats)
  SELECT * FROM arrived ORDER BY signature
  ON CONFLICT (signature) DO UPDATE SET
    repeats = d.repeats + 1 + excluded.repeats,
    state = CASE WHEN d.due_at IS NULL THEN 'received' ELSE d.state END,
    reason = CASE WHEN d.due_at IS NOT NULL THEN d.reason END,
    attempts = CASE WHEN d.due_at IS NULL THEN 0 ELSE d.attempts END,
    due_at = coalesce(d.due_at, now())
  RETURNING CASE WHEN due_at BETWEEN now()::timestamptz(3) AND clock_timestamp() + interval '1 ms' THEN subject END AS due`;

/** The place of an encrypted body. Unlike its id, the signature is known before the commit. @param signature in hex */
export function bodyPlace(signature: string): SealedPlace {
  return { table: 'webhook_deliveries', column: 'body', row: signature };
}

/**
 * Stores genuine deliveries in groups: those that arrive while a statement runs go together in the next. It has connections
 * of its own, so that it never waits behind other work. Then it adds one job for each subject of a group.
 */
@Injectable()
export class InboxWriter implements OnModuleInit, OnModuleDestroy, OnApplicationShutdown {
  private readonly log = new Logger(InboxWriter.name);
  private readonly pool: pg.Pool;
  private readonly queue: WorkQueue;
  private readonly group: GroupCommit<Row>;
  private readonly stored;
  private readonly notStored;
  private adding = 0;
  /** When a commit failed, unless a later one succeeded. Of the monotonic clock. */
  private failedAtMs = Number.NEGATIVE_INFINITY;
  private quietUntilMs = Number.NEGATIVE_INFINITY;

  constructor(
    private readonly env: Env,
    private readonly vault: Vault,
    private readonly contract: Contract,
    private readonly clock: Clock,
    queues: WorkQueues,
    metrics: Metrics,
  ) {
    this.pool = newPool(
      {
        connectionString: env.DATABASE_URL,
        max: connectionShares(env).receiver,
        idleTimeoutMillis: 0,
        connectionTimeoutMillis: STUCK_MS / 2,
        query_timeout: STUCK_MS,
        statement_timeout: STUCK_MS,
        application_name: 'notebridge-receiver',
      },
      // A repeat whose row a replay has locked fails alone, and does not delay the others of its group.
      { lock_timeout: String(LOCKED_MS) },
    );
    this.queue = queues.of('webhooks');
    this.stored = metrics.counter('webhook_kept_total', 'Deliveries committed and acknowledged');
    this.notStored = metrics.counter(
      'webhook_not_kept_total',
      'Correctly signed deliveries that were answered with 503',
    );
    this.group = new GroupCommit<Row>(LIMITS, {
      commit: (rows) => this.commit(rows),
      isUnavailable: isDatabaseUnavailable,
      now: () => clock.monotonicMs(),
    });
    metrics.gauge('webhook_waiting_room', 'Deliveries that wait for a commit', [], (gauge) =>
      gauge.set(this.group.load.waiting),
    );
  }

  async onModuleInit(): Promise<void> {
    if (this.env.hasRole('api')) await keepOpen(this.pool);
  }

  /** Commits a delivery, encrypted. @throws {Error} if it is not known to be committed */
  async store({ signature, body, sentAt, secretIndex }: VerifiedDelivery): Promise<void> {
    try {
      const parsed = parseEvent(body, this.contract.events);
      const isUnderstood = 'event' in parsed;
      const sealed = this.vault.seal(bodyPlace(signature), body);
      const eventType = isUnderstood ? parsed.event.eventType : parsed.eventType;
      const subject = (isUnderstood && parsed.subject) || signature;
      const row: Row = [Buffer.from(signature, 'hex'), sealed, sentAt, secretIndex, eventType, subject];
      await this.group.add(row, sealed.length);
    } catch (error) {
      this.notStored.inc();
      this.warn(error);
      throw error;
    }
  }

  @HealthIndicator({ name: 'inbox', vital: true, needs: ['database'] })
  async health(): Promise<Health> {
    const facts = { waiting: this.group.load.waiting };
    const isFailing = this.clock.monotonicMs() - this.failedAtMs < FAILED_MS;
    if (!isFailing && (await this.isWritable().catch(() => false))) return { status: 'ok', facts };
    return { status: 'down', reasons: [{ code: 'inbox-not-writable', follows: true }], facts };
  }

  /** Commits the accepted deliveries. Later ones are answered 503, so that the sender repeats them. */
  async onModuleDestroy(): Promise<void> {
    await this.group.close();
  }

  async onApplicationShutdown(): Promise<void> {
    await this.pool.end();
  }

  private async commit(rows: readonly Row[]): Promise<void> {
    try {
      const due = await this.insert(rows);
      this.failedAtMs = Number.NEGATIVE_INFINITY;
      this.stored.inc(rows.length);
      this.addJobs(due);
    } catch (error) {
      if (isDatabaseUnavailable(error)) this.failedAtMs = this.clock.monotonicMs();
      this.warn(error);
      throw error;
    }
  }

  /** @returns the subjects that are due by it */
  private async insert(rows: readonly Row[]): Promise<Set<string>> {
    const values = [0, 1, 2, 3, 4, 5].map((column) => rows.map((row) => row[column]));
    const client = await this.pool.connect();
    let isUsable = false; // a connection that failed or is stuck is destroyed
    try {
      const { rows: changed } = await client.query<{ due: string | null }>({ name: 'insert', text: INSERT, values });
      isUsable = true;
      return new Set(changed.flatMap(({ due }) => due ?? []));
    } finally {
      client.release(!isUsable);
    }
  }

  private warn(error: unknown): void {
    const nowMs = this.clock.monotonicMs();
    if (nowMs < this.quietUntilMs) return;
    this.quietUntilMs = nowMs + QUIET_MS;
    this.log.warn({ msg: 'deliveries were not stored, so the platform sends them again', ...errorTrace(error) });
  }

  /** Does not wait for the store of the queues, because the deliveries are committed. */
  private addJobs(subjects: ReadonlySet<string>): void {
    for (const subject of subjects) {
      if (this.adding >= MAX_ADDING) return;
      this.adding += 1;
      void this.queue.add(subject).finally(() => {
        this.adding -= 1;
      });
    }
  }

  /** @throws if the server of the inbox does not answer */
  private async isWritable(): Promise<boolean> {
    const { rows } = await this.pool.query<{ readOnly: boolean }>(
      `SELECT current_setting('transaction_read_only')::boolean AS "readOnly"`,
    );
    const isWritable = rows[0]?.readOnly === false;
    if (!isWritable) discardConnections(this.pool);
    return isWritable;
  }
}
