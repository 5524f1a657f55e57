import { Injectable } from '@nestjs/common';
import type { PoolClient } from 'pg';
import { Env } from '../../config/env.js';
import { ROLES } from '../../people/store/platform-users.repository.js';
import type { ImportFile } from '../model/import.js';
import { type Guard, guardsOf, type PlanCounts, parseThreshold } from '../model/import-guards.js';
import { type EarlierFile, type ImportRecord, ImportsRepository } from '../model/imports.repository.js';
import { plainName } from '../parse/csv/column-names.js';
import type { FileKind } from '../parse/row/import-row.js';
import { providersOf } from './row-sql.js';

/** SQL condition: the user of person `p` was found only by its email, and the platform has not reported that its role fits. */
export const IS_LINKED_BY_EMAIL = `p.origin = 'linked' AND NOT EXISTS (SELECT FROM platform_users u
  WHERE u.platform_user_id = p.platform_user_id
    AND u.role = CASE p.kind WHEN 'client' THEN '${ROLES.client}' ELSE '${ROLES.provider}' END)`;

/** Another person than that of a row `r`, as a scalar subquery, because a join would look through all people. */
const another = (column: string): string =>
  `(SELECT true FROM people p WHERE p.${column} = r.${column} AND p.kind = r.kind AND p.wanted
    AND p.external_id <> r.external_id LIMIT 1)`;

/** SQL condition: a row `r` adds a person, also if that needs review because of the email. */
const IS_NEW = `(r.person_id IS NULL AND (r.planned = 'create-or-link' OR r.planned = 'needs-review' AND r.code = 'email-taken'))`;

/** Compares a plan with the guards. */
@Injectable()
export class GuardsRepository {
  constructor(
    private readonly env: Env,
    private readonly imports: ImportsRepository,
  ) {}

  /** @param files of the import */
  async evaluate(tx: PoolClient, record: ImportRecord, files: readonly ImportFile[]): Promise<Guard[]> {
    const { rows } = await tx.query<PlanCounts & { pending: number }>(
      `WITH present AS MATERIALIZED (SELECT kind, count(*)::int AS people FROM people WHERE wanted GROUP BY kind),
       rows AS MATERIALIZED (
         SELECT r.kind, r.planned = 'delete' AS deletes,
           r.planned = 'delete' AND (r.file > 0 OR (SELECT ${IS_LINKED_BY_EMAIL} FROM people p WHERE p.id = r.person_id)) AS confirmed,
           r.planned IN ('provider-change', 'needs-review') AND r.providers IS NOT NULL AND NOT r.adds_providers
             AND NOT r.providers @> ${providersOf('r.person_id')} AS removes,
           ${IS_NEW} AS creates,
           ${IS_NEW} AND (${another('email_fingerprint')} OR ${another('profile_hash')}) IS TRUE AS doubled
         FROM import_rows r WHERE r.import_id = $1 AND r.outcome = 'pending')
       SELECT count(*) FILTER (WHERE r.deletes)::int AS deletes, count(*) FILTER (WHERE r.confirmed)::int AS "confirmedDeletes",
         count(*) FILTER (WHERE r.removes)::int AS "providerRemovals", count(*) FILTER (WHERE r.creates)::int AS creates,
         count(*) FILTER (WHERE r.doubled)::int AS doubled,
         count(r.kind)::int AS pending, coalesce((SELECT people FROM present WHERE kind = k.kind), 0) AS people
       FROM unnest(ARRAY['provider', 'client']::person_kind[]) AS k(kind) LEFT JOIN rows r ON r.kind = k.kind
       GROUP BY k.kind ORDER BY k.kind DESC`,
      [record.id],
    );
    const thresholds = {
      deletes: parseThreshold(this.env.IMPORT_MAX_DELETES),
      providerRemovals: parseThreshold(this.env.IMPORT_MAX_PROVIDER_REMOVALS),
    };
    // If no person changes under these ids, they are right.
    const isIdle = rows.every(({ pending }) => pending === 0);
    return guardsOf(rows, thresholds, isIdle ? 0 : await this.peopleUnderOtherColumn(tx, record, files));
  }

  /** How many people of this kind are known, if the ids came from another column in the last import; otherwise 0. */
  private async peopleUnderOtherColumn(
    tx: PoolClient,
    record: ImportRecord,
    files: readonly ImportFile[],
  ): Promise<number> {
    const now = idColumns(files.map((file) => ({ ...file, idSystems: record.idSystems })));
    const earlier = await this.imports.filesBefore(record.openedAt, new Set(now.keys()), tx);
    const before = idColumns(earlier);
    const kinds = [...now].filter(([kind, column]) => (before.get(kind) ?? column) !== column).map(([kind]) => kind);
    const people = kinds.flatMap((kind) =>
      kind === 'providers' ? 'provider' : kind === 'clients' ? 'client' : ['provider', 'client'],
    );
    if (people.length === 0) return 0;
    const { rows } = await tx.query<{ count: number }>(
      'SELECT count(*)::int AS count FROM people WHERE wanted AND kind::text = ANY ($1::text[])',
      [people],
    );
    return rows[0]?.count ?? 0;
  }
}

/** The column, or the FHIR identifier systems, of the ids of each kind of file. */
function idColumns(files: readonly EarlierFile[]): Map<FileKind, string> {
  const columns = new Map<FileKind, string>();
  for (const { kind, csv, idSystems } of files) {
    if (kind === 'fhir') columns.set(kind, idSystems.join(','));
    if (!csv || csv.mapping.isRejectedCsv) continue;
    const id = csv.mapping.columns.find(({ field }) => field === 'externalId');
    if (id) columns.set(kind, plainName(id.name));
  }
  return columns;
}
