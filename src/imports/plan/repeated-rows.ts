import { Injectable } from '@nestjs/common';
import type { PoolClient } from 'pg';
import { PROVIDERS_MAX } from '../../people/rules/person-field-rules.js';
import { rejection } from '../parse/row/rejection.js';
import { forget, providersOf } from './row-sql.js';

/** SQL condition: an id contains other characters than ASCII, so that it may be written in several forms. */
const MAY_VARY = (id: string): string => `octet_length(${id}) <> char_length(${id})`;

/** Rows of an import that name the same person. */
@Injectable()
export class RepeatedRows {
  /**
   * Unicode has several forms of one text (NFC, NFD). Rows get the form in which the id is known, as unchanged rows have it,
   * otherwise that of the first row.
   */
  async useOneSpelling(tx: PoolClient, importId: string): Promise<void> {
    const { rowCount } = await tx.query(
      `SELECT 1 FROM import_rows WHERE import_id = $1 AND outcome <> 'unchanged' AND ${MAY_VARY('external_id')} LIMIT 1`,
      [importId],
    );
    if (rowCount === 0) return;
    await tx.query(
      `WITH rows AS MATERIALIZED (
         SELECT row_no, kind, external_id, normalize(external_id, NFC) AS form FROM import_rows
         WHERE import_id = $1 AND outcome <> 'unchanged' AND ${MAY_VARY('external_id')}),
       known AS MATERIALIZED (
         SELECT kind, normalize(external_id, NFC) AS form,
           (array_agg(external_id ORDER BY wanted DESC, external_id))[1] AS external_id FROM people
         WHERE ${MAY_VARY('external_id')} AND wanted_version > 0 GROUP BY 1, 2),
       spelled AS (
         SELECT r.row_no, coalesce(k.external_id,
           first_value(r.external_id) OVER (PARTITION BY r.kind, r.form ORDER BY r.row_no)) AS external_id
         FROM rows r LEFT JOIN known k ON k.kind = r.kind AND k.form = r.form)
       UPDATE import_rows r SET external_id = s.external_id FROM spelled s
       WHERE r.import_id = $1 AND r.row_no = s.row_no AND r.external_id <> s.external_id`,
      [importId],
    );
  }

  /**
   * Keeps one row of each person: the newest version; otherwise the first row, with the providers of all rows that are
   * equal to it, or one of these if only that was stored with its content. Other rows contradict it and are rejected.
   */
  async unite(tx: PoolClient, importId: string): Promise<void> {
    const [repeated, older, duplicate] = [rejection('repeated'), rejection('older-version'), rejection('duplicate-id')];
    await tx.query(
      `WITH repeated AS MATERIALIZED (
         SELECT kind, external_id FROM import_rows WHERE import_id = $1 AND outcome IN ('pending', 'unchanged')
         GROUP BY kind, external_id HAVING count(*) > 1),
       read AS MATERIALIZED (
         SELECT r.row_no, r.line, r.kind, r.external_id, r.says, r.version_at, r.version_no, r.version_place,
           r.platform_user_id AS user_id,
           r.says = 'person' AND r.profile IS NULL AS is_empty,
           concat(r.says, coalesce(r.profile_hash, (SELECT p.profile_hash FROM people p WHERE p.id = r.person_id))) AS content,
           CASE WHEN r.outcome = 'unchanged' THEN ${providersOf('r.person_id')} ELSE r.providers END AS providers,
           bool_or(r.version_at IS NOT NULL OR r.version_no IS NOT NULL OR r.says = 'deleted')
             OVER (PARTITION BY r.kind, r.external_id) AS has_versions
         FROM import_rows r JOIN repeated USING (kind, external_id)
         WHERE r.import_id = $1 AND r.outcome IN ('pending', 'unchanged')),
       compared AS (
         SELECT *, content = first_value(content) OVER (PARTITION BY kind, external_id ORDER BY row_no) AS is_first
         FROM read),
       rows AS MATERIALIZED (
         SELECT *, row_number() OVER (person ORDER BY version_at DESC NULLS LAST, version_no DESC NULLS LAST,
             version_place DESC NULLS LAST, row_no) AS by_version,
           row_number() OVER (person ORDER BY is_first DESC, is_empty, user_id IS NULL, row_no) AS by_place
         FROM compared WINDOW person AS (PARTITION BY kind, external_id)),
       kept AS MATERIALIZED (SELECT * FROM rows WHERE CASE WHEN has_versions THEN by_version ELSE by_place END = 1),
       others AS MATERIALIZED (
         SELECT r.row_no, k.row_no AS kept_row, k.line AS kept_line, r.has_versions, r.providers,
           r.content = k.content AND coalesce(r.user_id = k.user_id, true) AS is_equal
         FROM rows r JOIN kept k USING (kind, external_id) WHERE r.row_no <> k.row_no),
       named AS (
         SELECT row_no AS kept_row, row_no, providers FROM kept WHERE NOT has_versions
         UNION ALL SELECT kept_row, row_no, providers FROM others WHERE is_equal AND NOT has_versions),
       firsts AS (
         SELECT n.kept_row, one.id, min(ARRAY[n.row_no, one.place]) AS place FROM named n
         CROSS JOIN LATERAL unnest(n.providers) WITH ORDINALITY AS one(id, place) GROUP BY n.kept_row, one.id),
       united AS (
         SELECT kept_row, (array_agg(id ORDER BY place))[1:${PROVIDERS_MAX}] AS providers FROM firsts GROUP BY kept_row),
       merged AS (
         UPDATE import_rows r SET providers = u.providers FROM united u
         WHERE r.import_id = $1 AND r.row_no = u.kept_row AND r.outcome = 'pending')
       UPDATE import_rows r SET outcome = CASE WHEN o.is_equal OR o.has_versions THEN 'skipped' ELSE 'rejected' END::row_outcome,
         planned = CASE WHEN o.is_equal OR o.has_versions THEN NULL ELSE 'rejected' END, field = 'externalId',
         ${forget('o.is_equal OR o.has_versions')},
         code = CASE WHEN o.is_equal THEN $2 WHEN o.has_versions THEN $4 ELSE $6 END,
         hint = CASE WHEN o.is_equal THEN $3 WHEN o.has_versions THEN $5 ELSE replace($7, '987654321', o.kept_line::text) END
       FROM others o WHERE r.import_id = $1 AND r.row_no = o.row_no`,
      [
        ...[importId, repeated.code, repeated.hint, older.code, older.hint],
        ...[duplicate.code, rejection('duplicate-id', { line: 987_654_321 }).hint],
      ],
    );
  }
}
