import { Injectable, Logger } from '@nestjs/common';
import type { PoolClient } from 'pg';
import { Clock } from '../../config/clock.js';
import { Env } from '../../config/env.js';
import { withTimeout } from '../../config/with-timeout.js';
import { Database } from '../../database/database.js';
import { isDatabaseUnavailable } from '../../errors/database-fault.js';
import { errorTrace } from '../../errors/error-trace.js';
import { FeedReader } from '../../feed/feed-reader.js';
import { Contract } from '../../platform/contract/contract.js';
import { USER_MANAGEMENT } from '../../platform/pauses/apis.js';
import { IS_SENT } from '../../platform/pauses/call-log.repository.js';
import { count, MAX_COUNTED } from './decisions.js';
import { BY_INDEXES, type OldestDue, oldestDue, type WorkKind } from './oldest-due.js';
import type { CallIntervalResponse, CallsResponse, OverviewResponse } from './overview.dto.js';

/** Timeout for one statement; its figures are then unknown. */
const STATEMENT_MS = 2_000;

/** Timeout for reading all figures. */
const TIMEOUT_MS = 3_000;

/** The period of the limit. */
const WINDOW_SECONDS = 60;

/** The calls within the last window, and the end of the pause after a 429. */
const CALLS_NOW = `
  SELECT now() AS now,
    (SELECT count(*)::int FROM platform_calls
      WHERE at > now() - interval '${WINDOW_SECONDS} seconds' AND ${IS_SENT}) AS used,
    (SELECT limited_until FROM platform_pauses WHERE key = '${USER_MANAGEMENT}' AND limited_until > now())
      AS "blockedUntil"`;

/** The calls of each five minutes in the last six hours, up to the interval of $1. */
const CALL_HISTORY = `
  SELECT at, coalesce(calls, 0) AS calls, coalesce(refused, 0) AS refused, coalesce(failed, 0) AS failed
  FROM (SELECT date_bin('5 minutes', $1::timestamptz, 'epoch') AS newest) AS latest,
    LATERAL generate_series(newest - interval '355 minutes', newest, interval '5 minutes') AS at
    LEFT JOIN (
      SELECT date_bin('5 minutes', at, 'epoch') AS at, count(*)::int AS calls,
        count(*) FILTER (WHERE outcome IN ('rejected', 'unauthorized', 'rate-limited'))::int AS refused,
        count(*) FILTER (WHERE outcome IN ('unreachable', 'unknown-outcome'))::int AS failed
      FROM platform_calls WHERE at >= $1::timestamptz - interval '6 hours' AND ${IS_SENT} GROUP BY 1
    ) AS counted USING (at)
  ORDER BY at`;

/** The figures that are read from the tables. */
type Told = Pick<OverviewResponse, 'calls' | 'inbox' | 'noteLag' | 'oldestWork' | 'feedCursor'>;

const NOTHING: Told = {
  calls: null,
  inbox: null,
  noteLag: null,
  oldestWork: null,
  feedCursor: null,
};

/** Reads the figures of the overview, each by an index, so that its cost does not grow with the stored data. */
@Injectable()
export class OverviewRepository {
  private readonly log = new Logger(OverviewRepository.name);
  private told = NOTHING;
  private reading: Promise<void> | undefined;

  constructor(
    private readonly database: Database,
    private readonly env: Env,
    private readonly contract: Contract,
    private readonly feed: FeedReader,
    private readonly clock: Clock,
  ) {}

  /** Reads all but the feed's head on one connection. A figure not read in time is null, as are those after it. */
  async read(): Promise<Told> {
    if (!this.reading) {
      this.told = { ...NOTHING };
      this.reading = this.readInto(this.told).finally(() => {
        this.reading = undefined;
      });
    }
    await withTimeout(this.reading, TIMEOUT_MS, () => undefined, this.clock);
    return { ...this.told };
  }

  /** Fills in each figure once it is read. Health reports the faults. */
  private async readInto(told: Told): Promise<void> {
    const read = async (tx: PoolClient) => {
      await tx.query(`SET LOCAL statement_timeout = ${STATEMENT_MS}; ${BY_INDEXES}`);
      told.inbox = await inbox(tx);
      const oldest = await oldestDue(tx, this.contract);
      told.noteLag = await noteLag(tx, oldest.get('notes')?.since ?? null);
      told.oldestWork = await oldestWork(tx, oldest);
      told.calls = await this.callsNow(tx);
    };
    const incomplete = (error: unknown) => {
      if (!isDatabaseUnavailable(error)) this.log.warn({ msg: 'the overview is not complete', ...errorTrace(error) });
    };
    const readHead = async () => {
      told.feedCursor = await this.feed.head();
    };
    await Promise.all([this.database.transaction(read).catch(incomplete), readHead().catch(incomplete)]);
  }

  private async callsNow(tx: PoolClient): Promise<Told['calls']> {
    const { rows } = await tx.query<Pick<CallsResponse, 'used' | 'blockedUntil'> & { now: Date }>(CALLS_NOW);
    const { now, ...calls } = rows[0] as (typeof rows)[number];
    const { rows: history } = await tx.query<CallIntervalResponse>(CALL_HISTORY, [now]);
    const limit = this.env.USER_MANAGEMENT_CALLS_PER_MINUTE;
    return { limit, windowSeconds: WINDOW_SECONDS, ...calls, history };
  }
}

async function inbox(tx: PoolClient): Promise<Told['inbox']> {
  const { rows } = await tx.query<NonNullable<Told['inbox']>>(
    `SELECT count(*)::int AS waiting, min(received_at) AS "waitingSince",
       ${count(`webhook_deliveries WHERE state = 'dead'`)} AS dead,
       ${count(`webhook_deliveries WHERE state = 'not-understood'`)} AS "notUnderstood",
       (SELECT genuine_at FROM webhook_receiver) AS "lastGenuineAt"
     FROM (SELECT received_at FROM webhook_deliveries WHERE due_at IS NOT NULL
       ORDER BY due_at LIMIT ${MAX_COUNTED + 1}) AS due`,
  );
  return rows[0] ?? null;
}

/** The period that the lag of notes covers. */
const LAG_HOURS = 6;

/** Reads only the newest versions, so that its cost does not grow with history. */
async function noteLag(tx: PoolClient, awaitedSince: Date | null): Promise<Told['noteLag']> {
  const { rows } = await tx.query<Omit<NonNullable<Told['noteLag']>, 'awaitedSince'>>(
    `SELECT ${LAG_HOURS} AS hours, count(*)::int AS notes,
       percentile_cont(0.5) WITHIN GROUP (ORDER BY seconds) AS "medianSeconds",
       percentile_cont(0.95) WITHIN GROUP (ORDER BY seconds) AS "p95Seconds", max(seconds) AS "worstSeconds"
     FROM (SELECT event_at, greatest(0, extract(epoch FROM fetched_at - event_at))::float8 AS seconds
       FROM document_revisions WHERE notes IS NOT NULL AND fetched_at > now() - interval '${LAG_HOURS} hours'
       ORDER BY fetched_at DESC LIMIT ${MAX_COUNTED}) AS stored WHERE event_at IS NOT NULL`,
  );
  return rows[0] ? { ...rows[0], awaitedSince } : null;
}

/** Of each part, in bulk or not. */
async function oldestWork(tx: PoolClient, oldest: Map<WorkKind, OldestDue>): Promise<Told['oldestWork']> {
  const { rows } = await tx.query<{ imports: Date | null }>(
    `SELECT min(created_at) AS imports FROM imports WHERE state IN ('staging', 'running')`,
  );
  const first = (...kinds: WorkKind[]) =>
    kinds.flatMap((kind) => oldest.get(kind)?.since ?? []).sort((a, b) => a.getTime() - b.getTime())[0] ?? null;
  return {
    people: first('people', 'bulk-people'),
    sessions: first('sessions', 'bulk-sessions'),
    requests: first('session-requests'),
    imports: rows[0]?.imports ?? null,
    compliance: first('compliance-jobs'),
  };
}
