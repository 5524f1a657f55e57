import { Injectable } from '@nestjs/common';
import type { PoolClient } from 'pg';
import { Env } from '../../config/env.js';
import type { PersonKind } from '../../people/model/person.js';
import { type Guard, type GuardName, guardsOf, parseThreshold, type Threshold } from '../model/import-guards.js';

/** Counts what a plan does in the large. */
@Injectable()
export class GuardsRepository {
  private readonly thresholds: Record<GuardName, Threshold>;

  constructor(env: Env) {
    this.thresholds = {
      deletes: parseThreshold(env.IMPORT_MAX_DELETES),
      providerRemovals: parseThreshold(env.IMPORT_MAX_PROVIDER_REMOVALS),
      creates: parseThreshold(env.IMPORT_MAX_CREATES),
    };
  }

  /** Counts the deletes, removals and creates of planned rows. @param rowNos null: all rows of the import */
  async evaluateThresholds(
    tx: PoolClient,
    importId: string,
    rowNos: readonly number[] | null = null,
  ): Promise<Guard[]> {
    const { rows } = await tx.query<
      Record<'deletes' | 'creates' | 'removals' | 'people' | 'nameless', number> & { kind: PersonKind }
    >(
      `WITH present AS MATERIALIZED (SELECT kind, count(*)::int AS people FROM people WHERE wanted GROUP BY kind)
       SELECT k.kind, count(*) FILTER (WHERE r.planned = 'delete')::int AS deletes,
         count(*) FILTER (WHERE r.planned IN ('create-or-link', 'needs-review') AND r.person_id IS NULL)::int AS creates,
         count(*) FILTER (WHERE r.planned IN ('provider-change', 'needs-review') AND EXISTS (
           SELECT 1 FROM client_providers cp JOIN people q ON q.id = cp.provider_id
           WHERE cp.client_id = r.person_id AND NOT q.external_id = ANY(r.providers)))::int AS removals,
         coalesce((SELECT people FROM present WHERE kind = k.kind), 0) AS people,
         (SELECT count(*)::int FROM import_rows n
           WHERE n.import_id = $1 AND n.outcome = 'rejected' AND n.external_id IS NULL) AS nameless
       FROM unnest(ARRAY['provider', 'client']::person_kind[]) AS k(kind)
       LEFT JOIN import_rows r ON r.import_id = $1 AND r.kind = k.kind AND r.outcome = 'pending'
         AND ($2::int[] IS NULL OR r.row_no = ANY ($2))
       GROUP BY k.kind`,
      [importId, rowNos],
    );
    const clients = rows.filter((row) => row.kind === 'client');
    const byGuard = {
      deletes: rows.map((row) => ({ count: row.deletes, of: row.people })),
      providerRemovals: clients.map((row) => ({ count: row.removals, of: row.people })),
      creates: rows.map((row) => ({ count: row.creates, of: row.people })),
    };
    return guardsOf({ byGuard, nameless: rows[0]?.nameless ?? 0 }, this.thresholds);
  }
}
