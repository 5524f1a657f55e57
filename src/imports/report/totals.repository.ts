import { Injectable } from '@nestjs/common';
import { Database } from '../../database/database.js';
import type { PersonKind } from '../../people/model/person.js';
import { OF_ANY_ACCOUNT } from '../../platform/rate-limit/rate-limiter.repository.js';
import type { CheckedPeople, RemainingWork } from '../model/import-eta.js';
import type { ImportRecord, RowOutcome } from '../model/import-types.js';

/** Rows by outcome, the calls made and those left. */
export interface ImportTotals {
  counts: Partial<Record<RowOutcome, number>>;
  /** Rows that a snapshot added for people to delete, by outcome. */
  deletes: Partial<Record<RowOutcome, number>>;
  planned: Record<string, number>;
  callsMade: number;
  callsMax: number;
  /** The fewest calls among it. */
  work: RemainingWork;
}

/** Rows of one outcome and plan. */
interface RowGroup {
  outcome: RowOutcome;
  planned: string | null;
  rows: number;
}

/** People of one kind for whom calls were planned. */
interface WorkGroup {
  kind: PersonKind | null;
  people: number;
  callsMin: number;
  callsMax: number;
  longest: number;
  underWay: number;
  linked: number;
  absent: number;
  waitMs: number;
}

/** The person of a pending row takes no call any more; the row's outcome is counted soon. */
const IS_DONE = `p.state IN ('synced', 'failed', 'needs-review', 'deleted')`;

/** The check has said whether the person is on the platform. */
const IS_CHECKED = `(p.checked_absent_at IS NOT NULL OR p.platform_user_id IS NOT NULL OR p.step IN ('createProvider', 'createClient'))`;

/** The calls that a pending row still takes at least or, by the plan, at most. */
const calls = (planned: 'r.calls_min' | 'r.calls_max') => `CASE
  WHEN r.outcome <> 'pending' OR ${IS_DONE} THEN 0
  WHEN p.step IN ('createProvider', 'setClientProviders', 'deleteUser') OR r.kind = 'client' AND p.platform_user_id IS NOT NULL THEN 1
  WHEN r.kind = 'client' AND ${IS_CHECKED} THEN 1 + (cardinality(r.providers) > 1)::int
  ELSE ${planned} END`;

/** Counts of one import's rows and calls. */
@Injectable()
export class TotalsRepository {
  constructor(private readonly database: Database) {}

  /** Counts an import's rows by outcome and plan, and its calls. */
  async totals(record: ImportRecord): Promise<ImportTotals> {
    const { rows } = await this.database.pool.query<RowGroup>(
      `SELECT outcome, planned, count(*)::int AS rows FROM import_rows WHERE import_id = $1 GROUP BY outcome, planned`,
      [record.id],
    );
    const work = record.finishedAt ? [] : await this.work(record);
    const callsMade = record.appliedAt ? await this.callsMade(record) : 0;
    const callsMax = work.reduce((sum, group) => sum + group.callsMax, 0);
    return { ...rowTotals(rows), callsMade, callsMax, work: remainingWork(work) };
  }

  private async work(record: ImportRecord): Promise<WorkGroup[]> {
    const { rows } = await this.database.pool.query<WorkGroup>(
      `SELECT kind, count(*) FILTER (WHERE "callsMax" > 0)::int AS people,
         sum("callsMin")::int AS "callsMin", sum("callsMax")::int AS "callsMax", max("callsMin") AS longest,
         count(*) FILTER (WHERE "callsMax" > 0 AND is_under_way)::int AS "underWay",
         count(*) FILTER (WHERE is_asked AND origin = 'linked')::int AS linked,
         count(*) FILTER (WHERE is_asked AND origin IS DISTINCT FROM 'linked')::int AS absent,
         coalesce(max(wait_ms) FILTER (WHERE "callsMax" > 0), 0) AS "waitMs"
       FROM (
         SELECT r.kind, p.origin, ${calls('r.calls_min')} AS "callsMin", ${calls('r.calls_max')} AS "callsMax",
           p.lease_owner IS NOT NULL AS is_under_way,
           r.planned = 'create-or-link' AND r.email_fingerprint IS NOT NULL AND ${IS_CHECKED} AS is_asked,
           extract(epoch FROM p.due_at - clock_timestamp())::float8 * 1000 AS wait_ms
         FROM import_rows r LEFT JOIN people p ON p.id = r.person_id AND $2
         WHERE r.import_id = $1 AND (r.outcome = 'pending' OR r.calls_max > 0)) AS counted
       GROUP BY kind`,
      [record.id, record.appliedAt !== null],
    );
    return rows;
  }

  private async callsMade(record: ImportRecord): Promise<number> {
    const { rows } = await this.database.pool.query<{ made: number }>(
      `SELECT count(*)::int AS made FROM platform_calls c
       WHERE ${OF_ANY_ACCOUNT} AND c.granted_at >= $2 AND ($3::timestamptz IS NULL OR c.granted_at <= $3) AND c.outcome IS DISTINCT FROM 'not-sent'
         AND EXISTS (SELECT 1 FROM import_rows r WHERE r.import_id = $1 AND r.person_id = c.person_id)`,
      [record.id, record.appliedAt, record.finishedAt],
    );
    return rows[0]?.made ?? 0;
  }
}

function rowTotals(groups: RowGroup[]): Pick<ImportTotals, 'counts' | 'deletes' | 'planned'> {
  const totals: Pick<ImportTotals, 'counts' | 'deletes' | 'planned'> = { counts: {}, deletes: {}, planned: {} };
  for (const group of groups) {
    const counted = group.planned === 'delete' ? totals.deletes : totals.counts;
    counted[group.outcome] = (counted[group.outcome] ?? 0) + group.rows;
    if (group.planned) totals.planned[group.planned] = (totals.planned[group.planned] ?? 0) + group.rows;
  }
  return totals;
}

function remainingWork(groups: WorkGroup[]): RemainingWork {
  const sum = (of: (group: WorkGroup) => number, some = groups) => some.reduce((total, group) => total + of(group), 0);
  const most = (of: (group: WorkGroup) => number) => groups.reduce((max, group) => Math.max(max, of(group)), 0);
  return {
    people: sum((group) => group.people),
    callsMin: sum((group) => group.callsMin),
    longest: most((group) => group.longest),
    underWay: sum((group) => group.underWay),
    providers: checked('provider'),
    clients: checked('client'),
    waitMs: most((group) => group.waitMs),
  };

  function checked(kind: PersonKind): CheckedPeople {
    const some = groups.filter((group) => group.kind === kind);
    return {
      unchecked: sum((group) => group.callsMax - group.callsMin, some),
      linked: sum((group) => group.linked, some),
      absent: sum((group) => group.absent, some),
    };
  }
}
