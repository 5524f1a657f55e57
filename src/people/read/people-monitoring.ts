import { Injectable } from '@nestjs/common';
import { Clock } from '../../config/clock.js';
import { Database } from '../../database/database.js';
import { type Health, HealthIndicator } from '../../http/server/health-indicator.js';
import { Metrics } from '../../http/server/metrics.js';
import type { PersonKind, PersonState } from '../model/person.js';
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

/** How the mirror is: what stopped an operation, or a contract that lacks the API key's header, degrade it. */
@Injectable()
export class PeopleHealth {
  constructor(
    private readonly circuits: CircuitsRepository,
    private readonly platform: PlatformPeople,
  ) {}

  @HealthIndicator('people')
  async check(): Promise<Health> {
    if (!this.platform.isConfigured) {
      return {
        status: 'degraded',
        reason: 'PLATFORM_CONTRACT has no apiKey.header: people are kept and nothing is sent.',
      };
    }
    const stopped = await this.circuits.stopped();
    const [first] = stopped;
    if (!first) return { status: 'ok' };
    const isRefused = first.code !== 'platform-fault';
    const operations = stopped
      .filter(({ code }) => (code !== 'platform-fault') === isRefused)
      .map(({ operation }) => operation)
      .join(', ');
    const code = stopped.some((one) => one.code === 'platform-address') ? 'platform-address' : first.code;
    return { status: 'degraded', reason: REASONS[code](operations), facts: { stopped: operations } };
  }
}

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

/** Seconds after which a state counts as stuck: work in progress after a quarter of an hour, a review after a day. */
const PATIENCE: [PersonState, number][] = [
  ['pending', 900],
  ['waiting', 900],
  ['deleting', 900],
  ['failed', 86_400],
  ['needs-review', 86_400],
];

/** The kinds and states are named so that the index of both finds the few people who are stuck. */
const STUCK = `FROM people p JOIN unnest($1::person_state[], $2::int[]) AS patience(state, seconds) ON patience.state = p.state
  WHERE p.kind IN ('provider', 'client') AND p.state = ANY ($1::person_state[])
    AND p.updated_at < clock_timestamp() - patience.seconds * interval '1 second' AND p.paused_by_import IS NULL`;

/** People who are stuck: counted for the metrics, listed for an operator. */
@Injectable()
export class StuckRepository {
  private readonly patience = [PATIENCE.map(([state]) => state), PATIENCE.map(([, seconds]) => seconds)];

  constructor(private readonly database: Database) {}

  /** How many people of each kind are in each state, and how many of them are stuck. */
  async count(): Promise<PeopleCount[]> {
    const { rows } = await this.database.pool.query<PeopleCount>(
      `SELECT p.kind, p.state, count(*)::int AS people,
         count(*) FILTER (WHERE p.paused_by_import IS NULL AND p.updated_at < clock_timestamp() - patience.seconds * interval '1 second')::int AS stuck
       FROM people p LEFT JOIN unnest($1::person_state[], $2::int[]) AS patience(state, seconds) ON patience.state = p.state
       GROUP BY p.kind, p.state`,
      this.patience,
    );
    return rows;
  }

  /** The stuck people, the oldest first. @param after the moment and id of the last one seen */
  async list(limit: number, after?: { since: string; id: string }): Promise<(StuckPerson & { id: string })[]> {
    const { rows } = await this.database.pool.query<StuckPerson & { id: string }>(
      `SELECT p.id, p.kind, p.external_id AS "externalId", p.state, p.error_code AS code,
         to_char(p.updated_at, 'YYYY-MM-DD"T"HH24:MI:SS.MS"Z"') AS since,
         extract(epoch FROM clock_timestamp() - p.updated_at)::int AS "ageSeconds"
       ${STUCK} AND ($4::timestamptz IS NULL OR (p.updated_at, p.id) > ($4, $5::uuid))
       ORDER BY p.updated_at, p.id LIMIT $3`,
      [...this.patience, limit, after?.since ?? null, after?.id ?? null],
    );
    return rows;
  }
}

/** A count is used for so many times what it took: reading the metrics never costs more than a hundredth of that. */
const TIMES_WHAT_IT_TOOK = 100;

/** People by kind and state, and how many of them are stuck. */
@Injectable()
export class PeopleMetrics {
  private counts: Promise<PeopleCount[]> | undefined;
  private freshUntilMs = 0;

  constructor(
    metrics: Metrics,
    private readonly stuck: StuckRepository,
    private readonly clock: Clock,
  ) {
    this.declare(metrics, 'people', 'People by kind and state', ({ people }) => people);
    this.declare(metrics, 'people_stuck', 'People in a state for longer than they should be', ({ stuck }) => stuck);
  }

  private declare(metrics: Metrics, name: string, help: string, of: (count: PeopleCount) => number): void {
    metrics.gauge(name, help, ['kind', 'state'], async (gauge) => {
      const counts = await this.count();
      gauge.reset();
      for (const count of counts) gauge.set({ kind: count.kind, state: count.state }, of(count));
    });
  }

  /** Everybody is counted, which takes long when there are many: once for both gauges, and for readings that follow. */
  private count(): Promise<PeopleCount[]> {
    if (!this.counts || this.clock.monotonicMs() >= this.freshUntilMs) {
      const begunMs = this.clock.monotonicMs();
      this.freshUntilMs = Number.POSITIVE_INFINITY;
      this.counts = this.stuck.count().finally(() => {
        const endedMs = this.clock.monotonicMs();
        this.freshUntilMs = endedMs + TIMES_WHAT_IT_TOOK * (endedMs - begunMs);
      });
    }
    return this.counts;
  }
}
