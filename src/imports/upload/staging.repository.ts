import { Injectable } from '@nestjs/common';
import type { PoolClient } from 'pg';
import type { PersonKind } from '../../people/model/person.js';
import { type Profile, ProfileSeal } from '../../people/model/profile.js';
import { Vault } from '../../vault/vault.js';
import type { AcceptedRow, ImportedPerson, RejectedRow, ResourceReference } from '../parse/row/import-row.js';
import { type RawBlock, RawRowsRepository, type SealedBlock } from './raw-rows.repository.js';

/** The columns of a batch, with the types of their values. */
type Columns = Record<string, string>;

const CANDIDATE_COLUMNS = {
  ...{ row_no: 'int', file: 'int', line: 'int', kind: 'person_kind', external_id: 'text' },
  ...{ providers: 'text', profile_hash: 'bytea' },
};
const ROW_COLUMNS = {
  ...{ ...CANDIDATE_COLUMNS, profile: 'bytea', email_fingerprint: 'bytea', outcome: 'row_outcome' },
  ...{ planned: 'text', code: 'text', field: 'text', hint: 'text' },
};
const REFERENCE_COLUMNS = {
  ...{ reference_no: 'int', type: 'text', key: 'text', target: 'text', ends: 'timestamptz', kind: 'text' },
  ...{ rank: 'int', position: 'int', form: 'text', at: 'timestamptz' },
};

/** Where a row stands in its import: its number over all files, and its file's ordinal, both from 1. */
interface RowPlace {
  rowNo: number;
  file: number;
}

type StagedAccepted = RowPlace & {
  row: AcceptedRow;
  /** `ProfileSeal.hash` in hex: a Buffer for each row would outlive many a batch. */
  profileHash: string;
  /** Null: the row does not speak of the client's providers; in FHIR, resources that may be still to come do. */
  providers: readonly string[] | null;
};

/** A row on its way into the database; a rejected one with the kind that it, or else its file, is of. */
export type StagedRow = StagedAccepted | (RowPlace & { row: RejectedRow; kind: PersonKind | null });

export type StagedReference = ResourceReference & { referenceNo: number };

/** What stands for a reference's key, which may hold a person's identifier: equal keys have equal fingerprints. */
export function keyFingerprint(vault: Vault, key: string): string {
  return vault.fingerprint('reference', key).toString('base64');
}

/** Writes what was read of an import, a batch at a time. */
@Injectable()
export class StagingRepository {
  constructor(
    private readonly seal: ProfileSeal,
    private readonly vault: Vault,
    private readonly rawRows: RawRowsRepository,
  ) {}

  /** Equal profiles have equal hashes, in hex. */
  profileHash(person: ImportedPerson): string {
    return hex(this.seal.hash(profileOf(person)));
  }

  /** Seals what consecutive rows were read as. */
  sealRaw(importId: string, rows: readonly StagedRow[]): SealedBlock {
    const raw = (staged: StagedRow) =>
      isAccepted(staged) ? { raw: staged.row.raw, profile: profileOf(staged.row.person) } : { raw: staged.row.raw };
    return this.rawRows.seal(importId, new Map(rows.map((staged) => [staged.rowNo, raw(staged)])));
  }

  /** Stores consecutive rows: unchanged ones with their outcome, the others with what they say, sealed. */
  async storeRows(tx: PoolClient, importId: string, rows: readonly StagedRow[], block: SealedBlock): Promise<void> {
    const unchanged = await this.storeUnchanged(tx, importId, rows, block);
    const others = rows.filter(({ rowNo }) => !unchanged.has(rowNo)).map((staged) => this.rowValues(staged));
    const { table, values } = unnested(ROW_COLUMNS, 2, others);
    await tx.query(
      `INSERT INTO import_rows (import_id, ${Object.keys(ROW_COLUMNS)})
       SELECT $1, row_no, file, line, kind, external_id, providers::text[], profile_hash, profile, email_fingerprint,
         outcome, planned, code, field, hint FROM ${table}`,
      [importId, ...values],
    );
  }

  /** Stores what resources say beside the people. */
  async storeReferences(tx: PoolClient, importId: string, references: readonly StagedReference[]): Promise<void> {
    if (references.length === 0) return;
    const records = references.map(({ referenceNo, ...fact }) => this.referenceValues(referenceNo, fact));
    const { table, values } = unnested(REFERENCE_COLUMNS, 2, records);
    await tx.query(
      `INSERT INTO import_references (import_id, ${Object.keys(REFERENCE_COLUMNS)}) SELECT $1, n.* FROM ${table}`,
      [importId, ...values],
    );
  }

  /**
   * Stores a block of raw rows and, with the same statement, those rows that say what is known and synced already: nothing
   * of them is sealed by itself or written again, which makes a re-import cheap. @returns their numbers
   */
  async storeUnchanged(
    tx: PoolClient,
    importId: string,
    staged: readonly StagedRow[],
    { firstRow, lastRow, sealed }: SealedBlock,
  ): Promise<Set<number>> {
    const candidates = staged.flatMap((one) => {
      if (!isAccepted(one) || one.providers === null) return [];
      const { kind, externalId } = one.row.person;
      return [[one.rowNo, one.file, one.row.line, kind, externalId, listOf(one.providers), one.profileHash]];
    });
    const { table, values } = unnested(CANDIDATE_COLUMNS, 5, candidates);
    const { rows } = await tx.query<{ row_no: number }>(
      `WITH block AS (INSERT INTO import_raw_rows (import_id, first_row, last_row, sealed) VALUES ($1, $2, $3, $4)),
         n AS (SELECT * FROM ${table})
       INSERT INTO import_rows (import_id, row_no, file, line, kind, external_id, providers, planned, outcome,
         person_id, person_wanted_at)
       SELECT $1, n.row_no, n.file, n.line, n.kind, n.external_id, n.providers::text[], 'unchanged', 'unchanged', p.id, p.wanted_at
       FROM n
       CROSS JOIN LATERAL (SELECT id, kind, wanted, state, profile_hash, wanted_at FROM people
         WHERE kind = n.kind AND external_id = n.external_id LIMIT 1) AS p
       WHERE p.wanted AND p.state = 'synced' AND p.profile_hash = n.profile_hash
         AND (p.kind = 'provider' OR n.providers::text[] = ARRAY(
           SELECT q.external_id FROM client_providers cp JOIN people q ON q.id = cp.provider_id
           WHERE cp.client_id = p.id AND q.wanted ORDER BY cp.position))
       RETURNING row_no`,
      [importId, firstRow, lastRow, sealed, ...values],
    );
    return new Set(rows.map((row) => row.row_no));
  }

  /** Reopens unchanged rows whose person changed since they were read: the plan compares them like any other. */
  async recheckUnchanged(tx: PoolClient, importId: string): Promise<void> {
    const { rows } = await tx.query<{ rowNo: number; kind: PersonKind; externalId: string }>(
      `UPDATE import_rows r SET outcome = 'pending', planned = NULL, person_id = NULL, person_wanted_at = NULL
       WHERE r.import_id = $1 AND r.planned = 'unchanged' AND NOT EXISTS (
         SELECT 1 FROM people p WHERE p.id = r.person_id AND p.wanted AND p.state = 'synced' AND p.wanted_at = r.person_wanted_at)
       RETURNING row_no AS "rowNo", kind, external_id AS "externalId"`,
      [importId],
    );
    let block: RawBlock | undefined;
    for (const { rowNo, ...key } of rows.toSorted((left, right) => left.rowNo - right.rowNo)) {
      if (!block?.has(rowNo)) block = await this.rawRows.blockOf(importId, rowNo, tx);
      const profile = block?.get(rowNo)?.profile;
      if (!profile) throw new Error(`Raw row ${rowNo} is gone before the import was planned.`);
      await tx.query(
        `UPDATE import_rows SET profile = $3, profile_hash = $4, email_fingerprint = $5
         WHERE import_id = $1 AND row_no = $2`,
        [importId, rowNo, ...this.sealedOf(key, profile)],
      );
    }
  }

  /** A person's profile is sealed for its later place among the people. */
  private sealedOf(key: { kind: PersonKind; externalId: string }, profile: Profile) {
    return [this.seal.seal(key, profile), this.seal.hash(profile), this.seal.emailFingerprint(profile.email)] as const;
  }

  /** The values of `ROW_COLUMNS`. */
  private rowValues(staged: StagedRow): unknown[] {
    const place = [staged.rowNo, staged.file, staged.row.line];
    if (!isAccepted(staged)) {
      const { externalId, code, field, hint } = staged.row;
      return [...place, staged.kind, externalId, '{}', null, null, null, 'rejected', 'rejected', code, field, hint];
    }
    const { kind, externalId } = staged.row.person;
    const profile = profileOf(staged.row.person);
    const sealed = hex(this.seal.seal({ kind, externalId }, profile));
    const fingerprint = this.seal.emailFingerprint(profile.email);
    const { profileHash, providers } = staged;
    return [
      ...place,
      kind,
      externalId,
      listOf(providers),
      profileHash,
      sealed,
      fingerprint && hex(fingerprint),
      'pending',
    ];
  }

  /** The values of `REFERENCE_COLUMNS`. */
  private referenceValues(referenceNo: number, fact: ResourceReference): unknown[] {
    const of = (key: string) => keyFingerprint(this.vault, key);
    if (fact.type === 'alias') return [referenceNo, fact.type, of(fact.key), fact.externalId, null, fact.kind];
    const ends = fact.ends?.toISOString();
    if (fact.type === 'role') return [referenceNo, fact.type, of(fact.key), of(fact.practitionerKey), ends];
    const { type, clientKey, providerKey, rank, position, form, at } = fact;
    return [referenceNo, type, of(clientKey), of(providerKey), ends, null, rank, position, form, at?.toISOString()];
  }
}

function isAccepted(staged: StagedRow): staged is StagedAccepted {
  return staged.row.ok;
}

function profileOf({ email, firstName, lastName }: ImportedPerson): Profile {
  return { email: email ?? null, firstName, lastName };
}

function hex(bytes: Buffer): string {
  return `\\x${bytes.toString('hex')}`;
}

/** An array literal: ids hold no characters that JSON escapes but the two that a literal escapes likewise. */
function listOf(ids: readonly string[] | null): string | null {
  return ids && `{${JSON.stringify(ids).slice(1, -1)}}`;
}

/**
 * A batch as a table `n` whose columns are parameters from a number on, and the values of these: one array for each
 * column, of which PostgreSQL reads three times as many in a second as of JSON.
 */
function unnested(columns: Columns, first: number, records: readonly unknown[][]) {
  const arrays = Object.values(columns).map((type, at) => `$${first + at}::${type}[]`);
  const table = `unnest(${arrays}) AS n(${Object.keys(columns)})`;
  return { table, values: arrays.map((_, at) => records.map((record) => record[at])) };
}
