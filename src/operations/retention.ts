import { Injectable, Logger, type OnModuleDestroy, type OnModuleInit } from '@nestjs/common';
import { Clock } from '../config/clock.js';
import { Env } from '../config/env.js';
import { Database } from '../database/database.js';
import { OF_ANY_ACCOUNT } from '../platform/rate-limit/rate-limiter.repository.js';
import { Poller } from '../queue/notifier/poller.js';

const DAY_MS = 86_400_000;

/** Milliseconds between two rounds: well under a day, since a process that restarts begins to count anew. */
const EVERY_MS = DAY_MS / 8;

/** Rows of one statement: its locks are short, and what it deletes fits the write-ahead log. */
const BATCH = 1_000;

/** Deletes a table's rows, by their physical place, that nobody holds. */
const deletion = (table: string, where: string): string =>
  `DELETE FROM ${table} WHERE ctid = ANY (ARRAY(
     SELECT ctid FROM ${table} t WHERE ${where} LIMIT ${BATCH} FOR UPDATE SKIP LOCKED))`;

/** An import `i` that ended before, or was given up as a plan that was made before. */
const OVER = `(i.finished_at < $1 OR i.finished_at IS NOT NULL AND i.applied_at IS NULL AND i.staged_at < $1)`;
const OF_ONE_THAT_IS_OVER = `EXISTS (SELECT 1 FROM imports i WHERE i.id = t.import_id AND ${OVER})`;

/**
 * What is dropped, each for rows older than $1; some go sooner. The last event of the feed that has a cursor stays,
 * behind which the next ones are given. A plan that nobody applied is cancelled, which the imports' own count brings to
 * its end. Of a finished import the outcomes stay; what could still be retried by what its row says no longer can.
 */
const STATEMENTS: Record<string, string> = {
  calls: deletion('platform_calls', `${OF_ANY_ACCOUNT} AND granted_at < $1 AND expires_at < $1`),
  deliveries: deletion('webhook_deliveries', `state IN ('processed', 'ignored') AND received_at < $1`),
  events: deletion('feed_events', 'at < $1 AND (cursor IS NULL OR cursor < (SELECT max(cursor) FROM feed_events))'),
  handedOut: deletion('handed_out_urls', 'handed_out_at < $1'),
  notices: deletion('processing_notices', 'received_at < $1'),
  rejections: deletion('webhook_rejections', `minute < greatest($1, now() - interval '14 days')`),
  idempotencyRecords: deletion('idempotency_records', 'expires_at < greatest($1, now())'),
  plans: `UPDATE imports SET state = 'cancelled' WHERE ctid = ANY (ARRAY(
      SELECT ctid FROM imports WHERE state = 'planned' AND NOT apply_wanted AND staged_at < $1
      LIMIT ${BATCH} FOR UPDATE SKIP LOCKED))`,
  importCells: deletion('import_raw_rows', OF_ONE_THAT_IS_OVER),
  importFacts: deletion('import_references', OF_ONE_THAT_IS_OVER),
  importRows: `UPDATE import_rows SET profile = NULL, was = NULL,
      code = CASE WHEN code = 'changed-since-plan' THEN 'expired' ELSE code END
    WHERE ctid = ANY (ARRAY(
      SELECT r.ctid FROM import_rows r JOIN imports i ON i.id = r.import_id
      WHERE ${OVER} AND (r.profile IS NOT NULL OR r.was IS NOT NULL)
      LIMIT ${BATCH} FOR UPDATE OF r SKIP LOCKED))`,
};

/** Drops what was kept long enough: histories and copies, never notes or the audit trail. */
@Injectable()
export class Retention implements OnModuleInit, OnModuleDestroy {
  private readonly log = new Logger(Retention.name);
  private stopped = false;

  constructor(
    private readonly database: Database,
    private readonly env: Env,
    private readonly clock: Clock,
    private readonly poller: Poller,
  ) {}

  onModuleInit(): void {
    this.poller.every(EVERY_MS, 'retention', async () => {
      const dropped = await this.dropOld();
      if (Object.values(dropped).some((rows) => rows > 0)) this.log.log({ msg: 'old rows were dropped', ...dropped });
    });
  }

  onModuleDestroy(): void {
    this.stopped = true;
  }

  /** Drops what is old, in batches of their own transactions. @returns how many rows of each kind went */
  async dropOld(): Promise<Record<string, number>> {
    const moment = new Date(this.clock.now().getTime() - this.env.RETENTION_DAYS * DAY_MS);
    const dropped: Record<string, number> = {};
    for (const [kind, statement] of Object.entries(STATEMENTS)) {
      let rows = BATCH;
      while (rows === BATCH && !this.stopped) {
        rows = (await this.database.bulkPool.query(statement, [moment])).rowCount ?? 0;
        dropped[kind] = (dropped[kind] ?? 0) + rows;
      }
    }
    return dropped;
  }
}
