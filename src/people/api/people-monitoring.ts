import { Injectable } from '@nestjs/common';
import { Clock } from '../../config/clock.js';
import { Database } from '../../database/database.js';
import { type Health, HealthIndicator } from '../../http/server/health-indicator.js';
import { Metrics } from '../../http/server/metrics.js';
import { PERSON_KINDS, PERSON_STATES, type PersonKind, type PersonState } from '../model/person.js';
import type { StopCode } from '../model/person-codes.js';
import { PlatformPeople } from '../reconcile/platform-people.js';
import { CircuitsRepository } from '../store/circuits.repository.js';

const REASONS: Record<StopCode, (operations: string) => string> = {
  'platform-address': (operations) =>
    `What answers ${operations} is not the platform's user management: check PLATFORM_BASE_URL and PLATFORM_CONTRACT; work is kept.`,
  'platform-unauthorized': (operations) =>
    `The platform answers 403 to ${operations}: check PLATFORM_API_KEY; work is kept.`,
  'platform-fault': (operations) =>
    `The platform gives no readable answer to ${operations}: single calls find out when it does; work is kept.`,
};

/** A person who has been in one state for longer than it should take. */
export interface StuckPerson {
  kind: PersonKind;
  externalId: string;
  state: PersonState;
  code: string | null;
  /** Since when, as ISO 8601. */
  since: string;
  ageSeconds: number;
}

/** People of one kind in one state, and how many of them are stuck. */
interface PeopleCount {
  kind: PersonKind;
  state: PersonState;
  people: number;
  stuck: number;
}

/**
 * Stuck is who has been in progress for a quarter of an hour, or in need of somebody for a day, and is not paused. Who is
 * ignored needs nobody.
 */
const IS_STUCK = `paused_by_import IS NULL AND (
  state IN ('pending', 'waiting', 'deleting') AND updated_at < clock_timestamp() - interval '15 minutes'
  OR state IN ('failed', 'needs-review') AND updated_at < clock_timestamp() - interval '1 day'
    AND error_code IS DISTINCT FROM 'ignored')`;

/** A count is used for so many times what it took: reading the metrics never costs more than a hundredth of that. */
const TIMES_WHAT_IT_TOOK = 100;

/** What health, metrics and operators are told of people. */
@Injectable()
export class PeopleMonitoring {
  private counts: Promise<PeopleCount[]> | undefined;
  private freshUntilMs = 0;

  constructor(
    metrics: Metrics,
    private readonly database: Database,
    private readonly clock: Clock,
    private readonly circuits: CircuitsRepository,
    private readonly platform: PlatformPeople,
  ) {
    const declare = (name: string, help: string, field: 'people' | 'stuck') =>
      metrics.gauge(name, help, ['kind', 'state'], async (gauge) => {
        const counts = await this.count();
        gauge.reset();
        // A state that nobody is in has its 0 as well: what is compared with yesterday's nothing would be nothing.
        for (const kind of PERSON_KINDS) for (const state of PERSON_STATES) gauge.set({ kind, state }, 0);
        for (const { kind, state, [field]: value } of counts) gauge.set({ kind, state }, value);
      });
    declare('people', 'People by kind and state', 'people');
    declare('people_stuck', 'People in a state for longer than they should be', 'stuck');
  }

  /** What stopped an operation, or a contract that lacks the API key's header, degrades the mirror. */
  @HealthIndicator('people')
  async check(): Promise<Health> {
    if (!this.platform.isConfigured) {
      const reason = 'PLATFORM_CONTRACT has no apiKey.header: people are kept and nothing is sent.';
      return { status: 'degraded', reason };
    }
    const stopped = await this.circuits.stopped();
    const [first] = stopped;
    if (!first) return { status: 'ok' };
    // Refusals are to be mended here; what gives no readable answer besides is left out.
    const refused = stopped.filter(({ code }) => code !== 'platform-fault');
    const shown = refused.length > 0 ? refused : stopped;
    const operations = shown.map(({ operation }) => operation).join(', ');
    const code = shown.some((one) => one.code === 'platform-address') ? 'platform-address' : first.code;
    return { status: 'degraded', reason: REASONS[code](operations), facts: { stopped: operations } };
  }

  /**
   * The stuck people, the oldest first. The kinds and states are named so that the index of both finds the few.
   *
   * @param after the moment and id of the last one seen
   */
  async stuck(limit: number, after?: { since: string; id: string }): Promise<(StuckPerson & { id: string })[]> {
    const { rows } = await this.database.pool.query<StuckPerson & { id: string }>(
      `SELECT id, kind, external_id AS "externalId", state, error_code AS code,
         to_char(updated_at, 'YYYY-MM-DD"T"HH24:MI:SS.MS"Z"') AS since,
         extract(epoch FROM clock_timestamp() - updated_at)::int AS "ageSeconds"
       FROM people
       WHERE kind IN ('provider', 'client') AND state IN ('pending', 'waiting', 'deleting', 'failed', 'needs-review')
         AND ${IS_STUCK} AND ($2::timestamptz IS NULL OR (updated_at, id) > ($2, $3::uuid))
       ORDER BY updated_at, id LIMIT $1`,
      [limit, after?.since ?? null, after?.id ?? null],
    );
    return rows;
  }

  /** Everybody is counted, which takes long when there are many: once for both gauges, and for readings that follow. */
  private count(): Promise<PeopleCount[]> {
    const begunMs = this.clock.monotonicMs();
    if (this.counts && begunMs < this.freshUntilMs) return this.counts;
    this.freshUntilMs = Number.POSITIVE_INFINITY;
    const counted = this.database.pool.query<PeopleCount>(
      `SELECT kind, state, count(*)::int AS people, count(*) FILTER (WHERE ${IS_STUCK})::int AS stuck
       FROM people GROUP BY kind, state`,
    );
    this.counts = counted
      .then(({ rows }) => rows)
      .finally(() => {
        const endedMs = this.clock.monotonicMs();
        this.freshUntilMs = endedMs + TIMES_WHAT_IT_TOOK * (endedMs - begunMs);
      });
    return this.counts;
  }
}
