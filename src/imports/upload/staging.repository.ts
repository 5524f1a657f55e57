import { Injectable } from '@nestjs/common';
import type { PoolClient } from 'pg';
import { from as copyFrom } from 'pg-copy-streams';
import type { PersonKind } from '../../people/model/person.js';
import { type Profile, ProfileSeal } from '../../people/model/profile.js';
import { type CopyValue, copyLine } from '../model/copy-text.js';
import { type RawRows, RawRowsRepository, type SealedCells } from '../model/raw-rows.repository.js';
import { ReferenceKeys } from '../model/reference-keys.js';
import type { AcceptedRow, ImportedPerson, ReferenceFact, RejectedRow } from '../parse/row/import-row.js';
import { type KnownCandidate, UnchangedRowsRepository } from './unchanged-rows.repository.js';

const ROW_COLUMNS =
  'import_id, row_no, file, line, kind, external_id, profile, profile_hash, email_fingerprint, providers, outcome, planned, code, field, hint';
const FACT_COLUMNS = 'import_id, reference_no, type, key, target, kind, rank, at, position, ends, form';

/** Where a row stands in its import: its number over all files, and its file's ordinal, both from 1. */
interface RowPlace {
  rowNo: number;
  file: number;
}

export type StagedAccepted = RowPlace & {
  row: AcceptedRow;
  /** `ProfileSeal.hash` in hex: a Buffer for each row would outlive many a batch. */
  profileHash: string;
  /** Null: the row does not speak of the client's providers; in FHIR, resources that may be still to come do. */
  providers: readonly string[] | null;
};

/** A row on its way into the database; a rejected one with the kind that it, or else its file, is of. */
export type StagedRow = StagedAccepted | (RowPlace & { row: RejectedRow; kind: PersonKind | null });

export type StagedFact = ReferenceFact & { referenceNo: number };

/** Writes what was read of an import, a batch at a time. */
@Injectable()
export class StagingRepository {
  constructor(
    private readonly seal: ProfileSeal,
    private readonly keys: ReferenceKeys,
    private readonly cells: RawRowsRepository,
    private readonly unchanged: UnchangedRowsRepository,
  ) {}

  /** Equal profiles have equal hashes, in hex. */
  profileHash(person: ImportedPerson): string {
    return this.seal.hash(profileOf(person)).toString('hex');
  }

  /** Seals what consecutive rows were read as. */
  sealCells(importId: string, rows: readonly StagedRow[]): SealedCells {
    return this.cells.seal(importId, new Map(rows.map((staged) => [staged.rowNo, cellsOf(staged)])));
  }

  /** Stores consecutive rows: those that say nothing new with their outcome, the others with what they say, sealed. */
  async storeRows(tx: PoolClient, importId: string, rows: readonly StagedRow[], cells: SealedCells): Promise<void> {
    const unchanged = await this.unchanged.store(tx, importId, rows.flatMap(candidate), cells);
    const others = rows.filter(({ rowNo }) => !unchanged.has(rowNo));
    const lines = others.map((staged) => copyLine([importId, ...this.rowFields(staged)]));
    await copy(tx, `COPY import_rows (${ROW_COLUMNS}) FROM STDIN`, lines);
  }

  /** Stores what resources say beside the people. */
  async storeFacts(tx: PoolClient, importId: string, facts: readonly StagedFact[]): Promise<void> {
    const lines = facts.map((fact) => copyLine([importId, fact.referenceNo, fact.type, ...this.factFields(fact)]));
    await copy(tx, `COPY import_references (${FACT_COLUMNS}) FROM STDIN`, lines);
  }

  /** A person's profile is sealed for its later place among the people. */
  private rowFields(staged: StagedRow): CopyValue[] {
    const place = [staged.rowNo, staged.file, staged.row.line];
    if (!isAccepted(staged)) {
      const { kind, row } = staged;
      const why = [row.code, row.field, row.hint];
      return [...place, kind, row.externalId, null, null, null, [], 'rejected', 'rejected', ...why];
    }
    const { profileHash, providers } = staged;
    const { kind, externalId } = staged.row.person;
    const profile = profileOf(staged.row.person);
    const sealed = this.seal.seal({ kind, externalId }, profile);
    const fingerprint = this.seal.emailFingerprint(profile.email);
    const plan = ['pending', null, null, null, null];
    return [...place, kind, externalId, sealed, `\\x${profileHash}`, fingerprint, providers, ...plan];
  }

  private factFields(fact: ReferenceFact): CopyValue[] {
    switch (fact.type) {
      case 'alias':
        return [this.keys.of(fact.key), fact.externalId, fact.kind, null, null, null, null, null];
      case 'role':
        return [this.keys.of(fact.key), this.keys.of(fact.practitionerKey), null, null, null, null, fact.ends, null];
      case 'link':
        return [
          ...[this.keys.of(fact.clientKey), this.keys.of(fact.providerKey), null],
          ...[fact.rank, fact.at, fact.position, fact.ends, fact.form],
        ];
    }
  }
}

function isAccepted(staged: StagedRow): staged is StagedAccepted {
  return staged.row.ok;
}

function candidate(staged: StagedRow): KnownCandidate[] {
  if (!isAccepted(staged) || staged.providers === null) return [];
  const { rowNo, file, profileHash, providers } = staged;
  const { line, person } = staged.row;
  return [{ rowNo, file, line, kind: person.kind, externalId: person.externalId, profileHash, providers }];
}

function profileOf({ email, firstName, lastName }: ImportedPerson): Profile {
  return { email: email ?? null, firstName, lastName };
}

function cellsOf(staged: StagedRow): RawRows {
  const { raw } = staged.row;
  return isAccepted(staged) ? { raw, profile: profileOf(staged.row.person) } : { raw };
}

async function copy(tx: PoolClient, sql: string, lines: readonly string[]): Promise<void> {
  if (lines.length === 0) return;
  const stream = tx.query(copyFrom(sql));
  const done = new Promise<void>((resolve, reject) => {
    stream.once('finish', resolve);
    // Told once more when a connection that fell silent is given up.
    stream.on('error', reject);
  });
  stream.end(lines.join(''));
  await done;
}
