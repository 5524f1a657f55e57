import { Injectable } from '@nestjs/common';
import type { PoolClient } from 'pg';
import { Audit } from '../../audit/audit.js';
import { type Profile, profileOf } from '../../people/rules/person-field-rules.js';
import { ProfileSeal } from '../../people/rules/profile.js';
import { Vault } from '../../vault/vault.js';
import type { MergedChart } from '../model/merged-charts.js';
import { IS_OWN_CHART } from '../model/named-rows.js';
import { IS_ALONE } from '../model/open-imports.js';
import { usableEmail } from '../parse/row/email-text.js';
import type { ImportedPerson, ReadRow, RowCells } from '../parse/row/import-row.js';
import { rowPlace } from './row-places.js';

/** Columns of every row, with their types. */
const READ_COLUMNS = {
  ...{ row_no: 'int', file: 'int', line: 'int', kind: 'person_kind', external_id: 'text' },
  ...{ profile_hash: 'bytea', providers: 'text' },
};

/** The columns of rows that are not unchanged. */
const ROW_COLUMNS = {
  ...READ_COLUMNS,
  ...{ says: 'text', profile: 'bytea', cells: 'bytea', email_fingerprint: 'bytea', platform_user_id: 'text' },
  ...{ version_at: 'timestamptz', version_no: 'bigint', version_place: 'int' },
  ...{ outcome: 'row_outcome', planned: 'text', code: 'text', field: 'text', hint: 'text' },
};

/** A row that is ready to be stored. */
export interface StagedRow {
  rowNo: number;
  file: number;
  row: ReadRow;
  /** The hash of its person, if it was computed before. */
  hash?: string | undefined;
}

/** Providers of a client after an upload was read. */
export interface ResolvedList {
  externalId: string;
  providers: string[];
  /** They are added to those that the client has. */
  adds: boolean;
  /** Why none is left. */
  hint: string | null;
}

/** Stores the rows of an upload. */
@Injectable()
export class StagingRepository {
  constructor(
    private readonly seal: ProfileSeal,
    private readonly vault: Vault,
    private readonly audit: Audit,
  ) {}

  /**
   * Stores consecutive rows. Those that say what is known and synced already are stored with their outcome and without
   * content, which makes a re-import cheap, unless another import is open that may change people before.
   */
  async store(tx: PoolClient, importId: string, rows: readonly StagedRow[]): Promise<void> {
    if (rows.length === 0) return;
    for (const { row } of rows) if (row.is === 'person') this.audit.about(row.person.kind, row.person.externalId);
    const values = rows.map((row) => this.readValues(row));
    const isPlain = ({ row }: StagedRow) => row.is === 'person' && !row.version && !row.person.platformUserId;
    const plain = values.filter((_, at) => isPlain(rows[at] as StagedRow));
    const unchanged = plain.length > 0 ? await this.storeUnchanged(tx, importId, plain) : new Set<unknown>();
    const others = values.flatMap((read, at) =>
      unchanged.has(read[0]) ? [] : [[...read, ...this.rowValues(importId, rows[at] as StagedRow)]],
    );
    if (others.length === 0) return;
    const { table, values: parameters } = unnested(ROW_COLUMNS, 2, others);
    const columns = Object.keys(ROW_COLUMNS).map((column) => (column === 'providers' ? 'providers::text[]' : column));
    await tx.query(
      `INSERT INTO import_rows (import_id, ${Object.keys(ROW_COLUMNS)}) SELECT $1, ${columns} FROM ${table}`,
      [importId, ...parameters],
    );
  }

  /** Gives clients of an import the providers that references led to. Rejected rows keep their own reason. */
  async giveProviders(tx: PoolClient, importId: string, lists: readonly ResolvedList[]): Promise<void> {
    const records = lists.map(({ externalId, providers, adds, hint }) => [
      externalId,
      listLiteral(providers),
      String(adds),
      hint,
    ]);
    const columns = { external_id: 'text', providers: 'text', adds: 'boolean', hint: 'text' };
    const { table, values } = unnested(columns, 2, records);
    await tx.query(
      `UPDATE import_rows r SET providers = n.providers::text[], adds_providers = n.adds,
         hint = CASE WHEN r.says = 'rejected' THEN r.hint ELSE n.hint END,
         code = CASE WHEN r.says = 'rejected' THEN r.code WHEN n.hint IS NOT NULL THEN 'unresolved-provider' END
       FROM ${table}
       WHERE r.import_id = $1 AND r.kind = 'client' AND r.external_id = n.external_id
         AND (r.profile IS NOT NULL OR r.cells IS NOT NULL)`,
      [importId, ...values],
    );
  }

  /**
   * Gives merged charts of an import the hints that name their survivors. Adds a row for each chart that is a client of its
   * own here and that only its survivor names, so that a snapshot does not delete it.
   */
  async storeMerges(tx: PoolClient, importId: string, charts: readonly MergedChart[]): Promise<void> {
    if (charts.length === 0) return;
    const records = charts.map(({ externalId, hint, file, line }) => [externalId, hint, file, line]);
    const columns = { external_id: 'text', hint: 'text', file: 'int', line: 'int' };
    const { table, values } = unnested(columns, 2, records);
    await tx.query(
      `UPDATE import_rows r SET hint = n.hint FROM ${table}
       WHERE r.import_id = $1 AND r.says = 'merged' AND r.external_id = n.external_id`,
      [importId, ...values],
    );
    await tx.query(
      `INSERT INTO import_rows (import_id, row_no, file, line, kind, external_id, says, hint)
       SELECT $1, (SELECT max(row_no) FROM import_rows WHERE import_id = $1) + row_number() OVER (ORDER BY n.external_id),
         n.file, n.line, 'client', n.external_id, 'merged', n.hint
       FROM ${table}
       WHERE ${IS_OWN_CHART('n')} AND NOT EXISTS (SELECT FROM import_rows r
         WHERE r.import_id = $1 AND r.kind = 'client' AND r.external_id = n.external_id)`,
      [importId, ...values],
    );
  }

  /** The stored profiles of known people, by external id. */
  async knownProfiles(tx: PoolClient, kind: string, externalIds: readonly string[]): Promise<Map<string, Profile>> {
    const { rows } = await tx.query<{ id: string; externalId: string; profile: Buffer }>(
      `SELECT id, external_id AS "externalId", profile FROM people
       WHERE kind = $1 AND external_id = ANY ($2::text[]) AND wanted AND profile IS NOT NULL`,
      [kind, externalIds],
    );
    return new Map(rows.map(({ externalId, ...row }) => [externalId, this.seal.open(row, row.profile)]));
  }

  /** The hash of a person's profile, as PostgreSQL reads it. */
  hash(person: ImportedPerson): string {
    return `\\x${this.seal.hash(profileOf(person)).toString('hex')}`;
  }

  sealCells(importId: string, rowNo: number, cells: RowCells): Buffer {
    return this.vault.seal(rowPlace(importId, rowNo, 'cells'), JSON.stringify(cells));
  }

  openCells(importId: string, rowNo: number, sealed: Uint8Array): RowCells {
    return JSON.parse(this.vault.open(rowPlace(importId, rowNo, 'cells'), sealed)) as RowCells;
  }

  /** The values of `READ_COLUMNS`: texts, because a Buffer for each row would outlive many batches. */
  private readValues({ rowNo, file, row, hash }: StagedRow): unknown[] {
    const { kind, externalId } = row.is === 'person' ? row.person : row;
    if (row.is !== 'person') return [rowNo, file, row.line, kind, externalId, null, null];
    const providers = row.person.kind === 'client' && row.person.providers ? listLiteral(row.person.providers) : null;
    return [rowNo, file, row.line, kind, externalId, hash ?? this.hash(row.person), providers];
  }

  /** The values of the other columns. */
  private rowValues(importId: string, { rowNo, row }: StagedRow): unknown[] {
    const version = [row.version?.at?.toISOString(), row.version?.no, row.version?.place];
    if (row.is === 'person') {
      const profile = profileOf(row.person);
      const fingerprint = this.seal.emailFingerprint(profile.email);
      const sealed = hex(this.seal.sealAt(rowPlace(importId, rowNo, 'profile'), profile));
      const link = row.person.platformUserId;
      return ['person', sealed, null, fingerprint && hex(fingerprint), link, ...version, 'pending'];
    }
    if (row.is !== 'rejected') return [row.is, null, null, null, null, ...version, 'pending'];
    const cells = hex(this.sealCells(importId, rowNo, row.cells));
    const fingerprint = this.seal.emailFingerprint(usableEmail(row.cells.email ?? '') || undefined);
    return [
      'rejected',
      null,
      cells,
      fingerprint && hex(fingerprint),
      null,
      ...version,
      'rejected',
      'rejected',
      row.code,
      row.field,
      row.hint,
    ];
  }

  /** @returns the numbers of the rows that are unchanged, now stored */
  private async storeUnchanged(tx: PoolClient, importId: string, records: readonly unknown[][]): Promise<Set<unknown>> {
    const { table, values } = unnested(READ_COLUMNS, 2, records);
    // A scalar list, not a join: the planner knows little of tables that were filled a moment ago.
    const { rows } = await tx.query<{ rowNo: number }>(
      `WITH n AS (SELECT * FROM ${table})
       INSERT INTO import_rows (import_id, row_no, file, line, kind, external_id, says, planned, outcome, person_id, person_version)
       SELECT $1, n.row_no, n.file, n.line, n.kind, n.external_id, 'person', 'unchanged', 'unchanged', p.id, p.wanted_version
       FROM n
       CROSS JOIN LATERAL (SELECT id, kind, wanted, state, profile_hash, wanted_version FROM people
         WHERE kind = n.kind AND external_id = n.external_id LIMIT 1) AS p
       WHERE ${IS_ALONE} AND p.wanted AND p.state = 'synced' AND p.profile_hash = n.profile_hash
         AND (n.providers IS NULL OR n.providers::text[] = ARRAY(
           SELECT q.external_id FROM client_providers cp JOIN people q ON q.id = cp.provider_id
           WHERE cp.client_id = p.id AND q.wanted ORDER BY cp.position))
       RETURNING row_no AS "rowNo"`,
      [importId, ...values],
    );
    return new Set(rows.map(({ rowNo }) => rowNo));
  }
}

function hex(bytes: Buffer): string {
  return `\\x${bytes.toString('hex')}`;
}

/** A list of ids as an array literal, which escapes the same two characters as JSON. */
function listLiteral(ids: readonly string[]): string {
  return `{${JSON.stringify(ids).slice(1, -1)}}`;
}

/** Records as a table `n` in SQL, and the values of its parameters: an array literal for each column. */
interface Unnested {
  table: string;
  values: string[];
}

/**
 * Records as such a table, its parameters numbered from `first` on. PostgreSQL reads arrays three times as fast as JSON.
 *
 * @param records with texts, numbers and nulls
 */
function unnested(columns: Record<string, string>, first: number, records: readonly unknown[][]): Unnested {
  const arrays = Object.values(columns).map((type, at) => `$${first + at}::${type}[]`);
  const values = arrays.map((_, at) => `{${records.map((record) => arrayElement(record[at]))}}`);
  return { table: `unnest(${arrays}) AS n(${Object.keys(columns)})`, values };
}

/** An element of an array literal (PostgreSQL manual, Array Input and Output Syntax). */
function arrayElement(value: unknown): string {
  if (value === null || value === undefined) return 'NULL';
  return typeof value === 'number' ? String(value) : `"${String(value).replace(/["\\]/g, '\\$&')}"`;
}
