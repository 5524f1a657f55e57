import { Injectable } from '@nestjs/common';
import type { PoolClient } from 'pg';
import type { PersonKind } from '../../people/model/person.js';
import { type Profile, ProfileSeal } from '../../people/model/profile.js';
import { Vault } from '../../vault/vault.js';
import type { AcceptedRow, ImportedPerson, RejectedRow, ResourceReference } from '../parse/row/import-row.js';
import { type RawBlock, RawRowsRepository, type SealedBlock } from './raw-rows.repository.js';

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
    return this.seal.hash(profileOf(person)).toString('hex');
  }

  /** Seals what consecutive rows were read as. */
  sealRaw(importId: string, rows: readonly StagedRow[]): SealedBlock {
    const raw = (staged: StagedRow) => ({
      raw: staged.row.raw,
      ...(isAccepted(staged) && { profile: profileOf(staged.row.person) }),
    });
    return this.rawRows.seal(importId, new Map(rows.map((staged) => [staged.rowNo, raw(staged)])));
  }

  /** Stores consecutive rows: unchanged ones with their outcome, the others with what they say, sealed. */
  async storeRows(tx: PoolClient, importId: string, rows: readonly StagedRow[], block: SealedBlock): Promise<void> {
    const unchanged = await this.storeUnchanged(tx, importId, rows, block);
    const others = rows.filter(({ rowNo }) => !unchanged.has(rowNo)).map((staged) => this.columnsOf(staged));
    await tx.query(
      `INSERT INTO import_rows (import_id, row_no, file, line, kind, external_id, profile, profile_hash,
         email_fingerprint, providers, outcome, planned, code, field, hint)
       SELECT $1, * FROM json_to_recordset($2) AS r(row_no int, file int, line int, kind person_kind, external_id text,
         profile bytea, profile_hash bytea, email_fingerprint bytea, providers text[], outcome row_outcome, planned text,
         code text, field text, hint text)`,
      [importId, JSON.stringify(others)],
    );
  }

  /** Stores what resources say beside the people. */
  async storeReferences(tx: PoolClient, importId: string, references: readonly StagedReference[]): Promise<void> {
    if (references.length === 0) return;
    await tx.query(
      `INSERT INTO import_references (import_id, reference_no, type, key, target, kind, rank, at, position, ends, form)
       SELECT $1, * FROM json_to_recordset($2) AS f(reference_no int, type text, key text, target text,
         kind text, rank int, at timestamptz, position int, ends timestamptz, form text)`,
      [importId, JSON.stringify(references.map((one) => this.referenceColumnsOf(one)))],
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
      const hash = `\\x${one.profileHash}`;
      const { rowNo, file, providers } = one;
      return { row_no: rowNo, file, line: one.row.line, kind, external_id: externalId, providers, hash };
    });
    const { rows } = await tx.query<{ row_no: number }>(
      `WITH block AS (INSERT INTO import_raw_rows (import_id, first_row, last_row, sealed) VALUES ($1, $3, $4, $5))
       INSERT INTO import_rows (import_id, row_no, file, line, kind, external_id, providers, planned, outcome,
         person_id, person_wanted_at)
       SELECT $1, n.row_no, n.file, n.line, n.kind, n.external_id, n.providers, 'unchanged', 'unchanged', p.id, p.wanted_at
       FROM json_to_recordset($2) AS n(row_no int, file int, line int, kind person_kind, external_id text,
         providers text[], hash bytea)
       CROSS JOIN LATERAL (SELECT id, kind, wanted, state, profile_hash, wanted_at FROM people
         WHERE kind = n.kind AND external_id = n.external_id LIMIT 1) AS p
       WHERE p.wanted AND p.state = 'synced' AND p.profile_hash = n.hash
         AND (p.kind = 'provider' OR n.providers = ARRAY(
           SELECT q.external_id FROM client_providers cp JOIN people q ON q.id = cp.provider_id
           WHERE cp.client_id = p.id AND q.wanted ORDER BY cp.position))
       RETURNING row_no`,
      [importId, JSON.stringify(candidates), firstRow, lastRow, sealed],
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

  private columnsOf(staged: StagedRow) {
    const at = { row_no: staged.rowNo, file: staged.file, line: staged.row.line };
    if (!isAccepted(staged)) {
      const { externalId, code, field, hint } = staged.row;
      const why = { outcome: 'rejected', planned: 'rejected', code, field, hint };
      return { ...at, kind: staged.kind, external_id: externalId, providers: [], ...why };
    }
    const { person } = staged.row;
    const { kind, externalId } = person;
    const profile = profileOf(person);
    const fingerprint = this.seal.emailFingerprint(profile.email);
    return {
      ...at,
      kind,
      external_id: externalId,
      profile: hex(this.seal.seal({ kind, externalId }, profile)),
      profile_hash: `\\x${staged.profileHash}`,
      email_fingerprint: fingerprint && hex(fingerprint),
      providers: staged.providers,
      outcome: 'pending',
    };
  }

  private referenceColumnsOf({ referenceNo, ...fact }: StagedReference) {
    const of = (key: string) => keyFingerprint(this.vault, key);
    const at = { reference_no: referenceNo, type: fact.type };
    if (fact.type === 'alias') return { ...at, key: of(fact.key), target: fact.externalId, kind: fact.kind };
    if (fact.type === 'role') {
      return { ...at, key: of(fact.key), target: of(fact.practitionerKey), ends: fact.ends };
    }
    const { clientKey, providerKey, rank, position, form, at: since, ends } = fact;
    return { ...at, key: of(clientKey), target: of(providerKey), rank, position, form, at: since, ends };
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
