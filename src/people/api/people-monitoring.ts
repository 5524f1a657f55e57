import { Injectable } from '@nestjs/common';
import { Clock } from '../../config/clock.js';
import { PrismaService } from '../../database/prisma.service.js';
import { type Health, HealthIndicator, healthOf } from '../../monitoring/health-indicator.js';
import { Metrics } from '../../monitoring/metrics.js';
import { Contract } from '../../platform/contract/contract.js';
import { PERSON_KINDS, PERSON_STATES, type PersonKind, type PersonState } from '../rules/person.js';
import { LEGAL_HOLD } from '../rules/person-codes.js';
import type { StuckPersonResponse } from './person-view.js';

/** People of one kind in one state, and how many of them are stuck. */
interface PeopleCount {
  kind: PersonKind;
  state: PersonState;
  people: number;
  stuck: number;
}

/**
 * A person is stuck after 15 minutes in progress, or after a day in `failed` or `needs-review`. People ignored by an
 * operator and those under a legal hold never count.
 */
const IS_STUCK = `(
  state IN ('pending', 'waiting', 'deleting') AND updated_at < clock_timestamp() - interval '15 minutes'
    AND error_code IS DISTINCT FROM '${LEGAL_HOLD}'
  OR state IN ('failed', 'needs-review') AND updated_at < clock_timestamp() - interval '1 day'
    AND error_code IS DISTINCT FROM 'ignored')`;

/** Reuse a count for 100 times as long as its query took, so that metrics cost at most 1% of the time. */
const COUNT_TTL_FACTOR = 100;

/** The health, the metrics and the list of stuck people. */
@Injectable()
export class PeopleMonitoring {
  private counts: Promise<PeopleCount[]> | undefined;
  private freshUntilMs = 0;

  constructor(
    metrics: Metrics,
    private readonly prisma: PrismaService,
    private readonly clock: Clock,
    private readonly contract: Contract,
  ) {
    const declare = (name: string, help: string, field: 'people' | 'stuck') =>
      metrics.gauge(name, help, ['kind', 'state'], async (gauge) => {
        const counts = await this.count();
        gauge.reset();
        // States without people report 0, so that later values can be compared with it.
        for (const kind of PERSON_KINDS) for (const state of PERSON_STATES) gauge.set({ kind, state }, 0);
        for (const { kind, state, [field]: value } of counts) gauge.set({ kind, state }, value);
      });
    declare('people', 'People by kind and state', 'people');
    declare('people_stuck', 'People in one state for too long', 'stuck');
  }

  /** Degraded while the contract lacks the API key's header. */
  @HealthIndicator({ name: 'people', needs: ['worker'] })
  async check(): Promise<Health> {
    return healthOf([this.contract.apiKey === undefined && { code: 'not-configured' }]);
  }

  /**
   * The stuck people, oldest first. Naming the kinds and states lets the query use the index on both.
   *
   * @param after the time and id of the last person of the previous page
   */
  async stuck(limit: number, after?: { since: string; id: string }): Promise<(StuckPersonResponse & { id: string })[]> {
    return this.prisma.$queryRawUnsafe<(StuckPersonResponse & { id: string })[]>(
      `SELECT id, kind, external_id AS "externalId", state, error_code AS code,
         to_char(updated_at, 'YYYY-MM-DD"T"HH24:MI:SS.MS"Z"') AS since,
         extract(epoch FROM clock_timestamp() - updated_at)::int AS "ageSeconds"
       FROM people
       WHERE kind IN ('provider', 'client') AND state IN ('pending', 'waiting', 'deleting', 'failed', 'needs-review')
         AND ${IS_STUCK} AND ($2::timestamptz IS NULL OR (updated_at, id) > ($2, $3::uuid))
       ORDER BY updated_at, id LIMIT $1`,
      ...[limit, after?.since ?? null, after?.id ?? null],
    );
  }

  /** Counts all people, once for both gauges and for later readings, because a full count is slow. */
  private count(): Promise<PeopleCount[]> {
    const startedMs = this.clock.monotonicMs();
    if (this.counts && startedMs < this.freshUntilMs) return this.counts;
    this.freshUntilMs = Number.POSITIVE_INFINITY;
    this.counts = this.prisma.$queryRawUnsafe<PeopleCount[]>(
      `SELECT kind, state, count(*)::int AS people, count(*) FILTER (WHERE ${IS_STUCK})::int AS stuck
       FROM people GROUP BY kind, state`,
    );
    this.counts.then(
      () => {
        const endedMs = this.clock.monotonicMs();
        this.freshUntilMs = endedMs + COUNT_TTL_FACTOR * (endedMs - startedMs);
      },
      () => {
        this.counts = undefined;
      },
    );
    return this.counts;
  }
}
