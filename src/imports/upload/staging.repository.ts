import { Injectable } from '@nestjs/common';
import type { Pool, PoolClient } from 'pg';
import { Database } from '../../database/database.js';
import type { PersonKind } from '../../people/model/person.js';
import { type Profile, ProfileSeal } from '../../people/model/profile.js';
import { Vault } from '../../vault/vault.js';
import type { ReadRow, ResourceReference } from '../parse/row/import-row.js';
import type { ProviderCells } from './provider-cells.js';
import { profilePlace, rawPlace } from './row-places.js';

/** Columns and their types: of every row as it was read, of one that is not unchanged, and of a reference. */
const READ_COLUMNS = {
  ...{ row_no: 'int', file: 'int', line: 'int', kind: 'person_kind', external_id: 'text' },
  ...{ profile_hash: 'bytea', providers: 'text' },
};
const ROW_COLUMNS = {
  ...{ ...READ_COLUMNS, profile: 'bytea', email_fingerprint: 'bytea', outcome: 'row_outcome' },
  ...{ planned: 'text', code: 'text', field: 'text', hint: 'text' },
};
const REFERENCE_COLUMNS = {
  ...{ reference_no: 'int', type: 'text', key: 'text', target: 'text', ends: 'timestamptz', kind: 'text' },
  ...{ rank: 'int', position: 'int', form: 'text', at: 'timestamptz' },
};

/** A row on its way into the database. */
export interface StagedRow {
  /** Of `READ_COLUMNS` but for the last; texts alone, for a Buffer for each row would outlive many a batch. */
  values: unknown[];
  /** Null: the row does not speak of the client's providers; in FHIR, resources that may be to come do. */
  providers: readonly string[] | null;
  row: ReadRow;
  /** Of an accepted row. */
  profile?: Profile;
}

/** What consecutive rows were read as (`rawRow`), and an accepted one's profile. */
type RawBlock = ReadonlyMap<number, { raw: string; profile?: Profile }>;

/** A block as it is stored. */
interface SealedBlock {
  firstRow: number;
  lastRow: number;
  sealed: Buffer;
}

/** Consecutive rows, what they were read as, and their values of `READ_COLUMNS`. */
interface StagedBatch extends SealedBlock {
  rows: readonly StagedRow[];
  read: Unnested;
}

/** A row `r` of the block `c` of the import $1. */
const IN_BLOCK = 'r.import_id = $1 AND r.row_no BETWEEN c.first_row AND c.last_row';

/**
 * A row `r` stands in the file of rejected rows, or may come to: planned anew, a client is rejected when a provider of its
 * row is gone. A provider names none, the first plan rejected duplicates, and an empty list got the default provider.
 */
const isShown = (mayBeRetried: boolean) =>
  mayBeRetried
    ? `(r.outcome = 'rejected' OR r.kind = 'client' AND (r.outcome IN ('pending', 'failed', 'needsReview')
         OR r.outcome = 'skipped' AND r.code = 'changed-since-plan' AND r.planned <> 'delete'))`
    : `(r.outcome = 'rejected')`;

/** What stands for a reference's key, which may hold a person's identifier: equal keys have equal fingerprints. */
export function keyFingerprint(vault: Vault, key: string): string {
  return vault.fingerprint('reference', key).toString('base64');
}

/**
 * What was read of an import: its rows, what resources say beside them, and the raw rows, sealed in blocks: of all rows
 * until the plan, then of those that are or may be rejected.
 */
@Injectable()
export class StagingRepository {
  constructor(
    private readonly database: Database,
    private readonly seal: ProfileSeal,
    private readonly vault: Vault,
  ) {}

  /**
   * @param rowNo its number over all files, from 1
   * @param file its file's ordinal, from 1
   * @param kind of a rejected row that does not say; null: it may be either
   */
  staged(
    rowNo: number,
    file: number,
    row: ReadRow,
    kind: PersonKind | null,
    providers: readonly string[] | null,
  ): StagedRow {
    if (!row.ok) return { row, providers, values: [rowNo, file, row.line, row.kind ?? kind, row.externalId, null] };
    const { person, line } = row;
    const profile = { email: person.email ?? null, firstName: person.firstName, lastName: person.lastName };
    const values = [rowNo, file, line, person.kind, person.externalId, hex(this.seal.hash(profile))];
    return { row, profile, providers, values };
  }

  /** Consecutive rows, at least one, as they go to the database: made while the batch before is being stored. */
  batch(importId: string, staged: readonly StagedRow[], cells: ProviderCells): StagedBatch {
    const rows = staged.map((row) => ({ ...row, values: [...row.values, cells.listLiteral(row.providers)] }));
    const records = rows.map(({ values }) => values);
    const rowNos = records.map(([rowNo]) => rowNo as number);
    const [firstRow = 0, lastRow = firstRow] = [rowNos[0], rowNos.at(-1)];
    const block = new Map(rows.map(({ row: { raw }, profile }, at) => [rowNos[at] ?? 0, { raw, profile }]));
    const read = unnested(READ_COLUMNS, 5, records);
    return { rows, read, firstRow, lastRow, sealed: this.sealAt(importId, firstRow, block) };
  }

  /** Stores consecutive rows: unchanged ones with their outcome, the others with what they say, sealed. */
  async storeRows(tx: PoolClient, importId: string, batch: StagedBatch): Promise<void> {
    const rowNos = await this.storeUnchanged(tx, importId, batch);
    if (rowNos.size === 0) return;
    const others = batch.rows
      .filter(({ values }) => rowNos.has(values[0]))
      .map((staged) => this.rowValues(importId, staged));
    const { table, values } = unnested(ROW_COLUMNS, 2, others);
    await tx.query(
      `INSERT INTO import_rows (import_id, ${Object.keys(ROW_COLUMNS)})
       SELECT $1, row_no, file, line, kind, external_id, profile_hash, providers::text[], profile, email_fingerprint,
         outcome, planned, code, field, hint FROM ${table}`,
      [importId, ...values],
    );
  }

  /** Stores what resources say beside the people. @param first the number of the first of them */
  async storeReferences(
    tx: PoolClient,
    importId: string,
    references: readonly ResourceReference[],
    first = 1,
  ): Promise<void> {
    if (references.length === 0) return;
    const records = references.map((one, at) => this.referenceValues(first + at, one));
    const { table, values } = unnested(REFERENCE_COLUMNS, 2, records);
    await tx.query(
      `INSERT INTO import_references (import_id, ${Object.keys(REFERENCE_COLUMNS)}) SELECT $1, n.* FROM ${table}`,
      [importId, ...values],
    );
  }

  /** Reopens unchanged rows whose person changed since they were read: the plan compares them like any other. */
  async recheckUnchanged(tx: PoolClient, importId: string): Promise<void> {
    const { rows } = await tx.query<{ rowNo: number }>(
      `UPDATE import_rows r SET outcome = 'pending', planned = NULL, person_id = NULL, person_wanted_at = NULL
       WHERE r.import_id = $1 AND r.planned = 'unchanged' AND NOT EXISTS (
         SELECT 1 FROM people p WHERE p.id = r.person_id AND p.wanted AND p.state = 'synced' AND p.wanted_at = r.person_wanted_at)
       RETURNING row_no AS "rowNo"`,
      [importId],
    );
    let block: RawBlock | undefined;
    for (const { rowNo } of rows.toSorted((left, right) => left.rowNo - right.rowNo)) {
      if (!block?.has(rowNo)) block = await this.blockOf(importId, rowNo, tx);
      const profile = block?.get(rowNo)?.profile;
      if (!profile) throw new Error(`Raw row ${rowNo} is gone before the import was planned.`);
      const { seal } = this;
      const { email } = profile;
      const sealed = seal.sealAt(profilePlace(importId, rowNo), profile);
      await tx.query(
        `UPDATE import_rows SET profile = $3, profile_hash = $4, email_fingerprint = $5
         WHERE import_id = $1 AND row_no = $2`,
        [importId, rowNo, sealed, seal.hash(profile), seal.emailFingerprint(email)],
      );
    }
  }

  /** The block of raw rows that holds one; undefined when it is no longer kept. */
  async blockOf(
    importId: string,
    rowNo: number,
    sql: Pool | PoolClient = this.database.pool,
  ): Promise<RawBlock | undefined> {
    const { rows } = await sql.query<SealedBlock>(
      `SELECT first_row AS "firstRow", sealed FROM import_raw_rows
       WHERE import_id = $1 AND first_row <= $2 AND last_row >= $2`,
      [importId, rowNo],
    );
    return rows[0] && new Map(JSON.parse(this.vault.open(rawPlace(importId, rows[0].firstRow), rows[0].sealed)));
  }

  /** The blocks that hold rows of a condition, with the numbers of those, opened one at a time. @param which of a row `r` */
  async *blocksWith(tx: PoolClient, importId: string, which: string) {
    const { rows } = await tx.query<{ firstRow: number; rowNos: number[] }>(
      `SELECT c.first_row AS "firstRow", found.row_nos AS "rowNos" FROM import_raw_rows c CROSS JOIN LATERAL (
         SELECT array_agg(r.row_no) AS row_nos FROM import_rows r WHERE ${IN_BLOCK} AND (${which})) AS found
       WHERE c.import_id = $1 AND found.row_nos IS NOT NULL ORDER BY c.first_row`,
      [importId],
    );
    for (const { firstRow, rowNos } of rows) {
      const block = await this.blockOf(importId, firstRow, tx);
      if (block) yield { firstRow, rowNos, block };
    }
  }

  /**
   * Deletes raw rows that no file of rejected rows will show, a block at a time.
   *
   * @param mayBeRetried false: the import has ended for good, so that no more of its rows are going to be rejected
   */
  async discardRaw(tx: PoolClient, importId: string, { mayBeRetried }: { mayBeRetried: boolean }): Promise<void> {
    const shown = isShown(mayBeRetried);
    // A subquery with a limit goes by the index, however little the planner knows of rows that were just written.
    await tx.query(
      `DELETE FROM import_raw_rows c WHERE c.import_id = $1 AND (
         SELECT true FROM import_rows r WHERE ${IN_BLOCK} AND ${shown} ORDER BY r.row_no LIMIT 1) IS NULL`,
      [importId],
    );
    for await (const { firstRow, rowNos, block } of this.blocksWith(tx, importId, `${shown} IS NOT TRUE`)) {
      const dropped = new Set(rowNos);
      const kept = new Map([...block].filter(([rowNo]) => !dropped.has(rowNo)));
      if (kept.size === block.size) continue;
      await tx.query('UPDATE import_raw_rows SET sealed = $3 WHERE import_id = $1 AND first_row = $2', [
        importId,
        firstRow,
        this.sealAt(importId, firstRow, kept),
      ]);
    }
  }

  /**
   * Stores a block of raw rows and, with the same statement, those rows that say what is known and synced already: nothing
   * of them is sealed by itself or written again, which makes a re-import cheap. @returns the numbers of the others
   */
  private async storeUnchanged(tx: PoolClient, importId: string, batch: StagedBatch): Promise<Set<unknown>> {
    const { rows } = await tx.query<{ rowNo: number }>(
      `WITH block AS (INSERT INTO import_raw_rows (import_id, first_row, last_row, sealed) VALUES ($1, $2, $3, $4)),
         n AS (SELECT * FROM ${batch.read.table}),
       unchanged AS (
         INSERT INTO import_rows (import_id, row_no, file, line, kind, external_id, providers, planned, outcome,
           person_id, person_wanted_at)
         SELECT $1, n.row_no, n.file, n.line, n.kind, n.external_id, n.providers::text[], 'unchanged', 'unchanged',
           p.id, p.wanted_at
         FROM n
         CROSS JOIN LATERAL (SELECT id, kind, wanted, state, profile_hash, wanted_at FROM people
           WHERE kind = n.kind AND external_id = n.external_id LIMIT 1) AS p
         WHERE p.wanted AND p.state = 'synced' AND p.profile_hash = n.profile_hash
           AND (p.kind = 'provider' OR n.providers::text[] = ARRAY(
             SELECT q.external_id FROM client_providers cp JOIN people q ON q.id = cp.provider_id
             WHERE cp.client_id = p.id AND q.wanted ORDER BY cp.position))
         RETURNING row_no)
       SELECT row_no AS "rowNo" FROM n WHERE row_no NOT IN (SELECT row_no FROM unchanged)`,
      [importId, batch.firstRow, batch.lastRow, batch.sealed, ...batch.read.values],
    );
    return new Set(rows.map(({ rowNo }) => rowNo));
  }

  /** The values of `ROW_COLUMNS`. */
  private rowValues(importId: string, { values, row, profile }: StagedRow): unknown[] {
    if (!row.ok || !profile)
      return [...values, null, null, 'rejected', 'rejected', ...(row.ok ? [] : [row.code, row.field, row.hint])];
    const fingerprint = this.seal.emailFingerprint(profile.email);
    const sealed = this.seal.sealAt(profilePlace(importId, values[0] as number), profile);
    return [...values, hex(sealed), fingerprint && hex(fingerprint), 'pending'];
  }

  /** The values of `REFERENCE_COLUMNS`. */
  private referenceValues(referenceNo: number, reference: ResourceReference): unknown[] {
    const of = (key: string) => keyFingerprint(this.vault, key);
    const { type } = reference;
    if (type === 'alias') return [referenceNo, type, of(reference.key), reference.externalId, null, reference.kind];
    const ends = reference.ends?.toISOString();
    if (type === 'role') return [referenceNo, type, of(reference.key), of(reference.practitionerKey), ends];
    const { clientKey, providerKey, rank, position, form, at } = reference;
    return [referenceNo, type, of(clientKey), of(providerKey), ends, null, rank, position, form, at?.toISOString()];
  }

  sealAt(importId: string, firstRow: number, block: RawBlock): Buffer {
    return this.vault.seal(rawPlace(importId, firstRow), JSON.stringify([...block]));
  }
}

function hex(bytes: Buffer): string {
  return `\\x${bytes.toString('hex')}`;
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

/** As PostgreSQL's array literals have it (manual, Array Input and Output Syntax). */
function arrayElement(value: unknown): string {
  if (value === null || value === undefined) return 'NULL';
  return typeof value === 'number' ? String(value) : `"${String(value).replace(/["\\]/g, '\\$&')}"`;
}
