import { Injectable } from '@nestjs/common';
import type { PoolClient } from 'pg';
import type { ImportRecord } from '../model/imports.repository.js';
import { rejection } from '../parse/row/rejection.js';

/** SQL condition: a rejected row does not name its person, who may be any of the people to delete. */
export const IS_UNCLEAR = `(outcome = 'rejected' AND external_id IS NULL)`;

/** Deletions of people that a snapshot does not name, or that the files report as deleted. */
@Injectable()
export class SnapshotDeletes {
  /**
   * Adds a row for each person to delete, after the last one; also for those whose deletion by an earlier import was not sent,
   * because a cancel may take it back before this import is applied. A snapshot speaks only of the kinds that it contains. A
   * rejected row names its person, too, and a former id its successor. While a row is unclear, no one is deleted.
   *
   * @returns how many rows were added
   */
  async add(tx: PoolClient, { id, mentioned }: ImportRecord): Promise<number> {
    const unclear = await tx.query(`SELECT 1 FROM import_rows WHERE import_id = $1 AND ${IS_UNCLEAR} LIMIT 1`, [id]);
    if (unclear.rowCount !== 0) return 0;
    const { rows: successors } = await tx.query<{ externalId: string }>(
      `SELECT p.external_id AS "externalId" FROM former_ids f JOIN people p ON p.id = f.person_id
         JOIN import_rows r ON r.external_id = f.external_id AND coalesce(r.kind, f.kind) = f.kind
       WHERE r.import_id = $1`,
      [id],
    );
    const named = [...mentioned, ...successors.map(({ externalId }) => externalId)];
    const { code, hint } = rejection('already-deleted');
    const { rowCount } = await tx.query(
      `INSERT INTO import_rows (import_id, row_no, file, line, kind, external_id, says, planned, phase, person_id,
         person_version, calls_min, calls_max, outcome, code, hint)
       SELECT $1, (SELECT max(row_no) FROM import_rows WHERE import_id = $1)
           + row_number() OVER (ORDER BY p.kind DESC, p.external_id), 0, 0, p.kind, p.external_id, 'deleted', CASE WHEN p.wanted THEN 'delete' END,
         CASE WHEN p.wanted THEN CASE p.kind WHEN 'client' THEN 3 ELSE 4 END END, p.id, p.wanted_version, (p.wanted AND p.platform_user_id IS NOT NULL)::int,
         p.wanted::int, CASE WHEN p.wanted THEN 'pending' ELSE 'skipped' END::row_outcome,
         CASE WHEN NOT p.wanted THEN $3 END, CASE WHEN NOT p.wanted THEN $4 END
       FROM people p
       WHERE (p.wanted OR p.profile IS NOT NULL AND p.import_id IS NOT NULL) AND p.stated_at <= (SELECT opened_at FROM imports WHERE id = $1) AND p.kind IN (SELECT DISTINCT kind FROM import_rows WHERE import_id = $1)
         AND NOT EXISTS (SELECT 1 FROM unnest($2::text[]) AS mentioned(id) WHERE mentioned.id = p.external_id)
         AND NOT EXISTS (SELECT 1 FROM import_rows r
           WHERE r.import_id = $1 AND coalesce(r.kind, p.kind) = p.kind AND r.external_id = p.external_id)`,
      [id, named, code, hint],
    );
    return rowCount ?? 0;
  }

  /** Keeps providers that clients will still name when the plan is done. */
  async keepReferencedProviders(tx: PoolClient, importId: string): Promise<void> {
    const { code, hint, field } = rejection('provider-in-use', { field: 'providers' });
    await tx.query(
      `WITH leaving AS MATERIALIZED (
         SELECT row_no, external_id, person_id FROM import_rows
         WHERE import_id = $1 AND kind = 'provider' AND planned = 'delete' AND outcome = 'pending'),
       replaced AS MATERIALIZED (
         SELECT external_id FROM import_rows WHERE import_id = $1 AND kind = 'client' AND outcome = 'pending'
           AND (planned = 'delete' OR says = 'person' AND providers IS NOT NULL AND NOT adds_providers)),
       named AS (
         SELECT unnest(providers) AS external_id FROM import_rows
         WHERE import_id = $1 AND kind = 'client' AND says = 'person' AND outcome = 'pending'
           AND EXISTS (SELECT FROM leaving)
         UNION
         SELECT l.external_id FROM leaving l JOIN client_providers cp ON cp.provider_id = l.person_id
         JOIN people c ON c.id = cp.client_id
         WHERE c.wanted AND NOT EXISTS (SELECT 1 FROM replaced WHERE replaced.external_id = c.external_id))
       UPDATE import_rows r SET outcome = 'skipped', phase = NULL, code = $2, hint = $3, field = $4, calls_min = 0, calls_max = 0
       FROM leaving l WHERE r.import_id = $1 AND r.row_no = l.row_no AND l.external_id IN (SELECT external_id FROM named)`,
      [importId, code, hint, field],
    );
  }
}
