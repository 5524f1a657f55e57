import { Injectable } from '@nestjs/common';
import type { PoolClient } from 'pg';
import { from as copyFrom } from 'pg-copy-streams';
import type { PersonKind } from '../people/person.js';
import { ProfileSeal } from '../people/profile.js';
import { type SealedPlace, Vault } from '../vault/vault.js';
import { type CopyValue, copyLine } from './copy-text.js';
import type { AcceptedRow, ReadRow, ReferenceFact, RejectedRow } from './read/import-row.js';
import { ReferenceKeys } from './reference-keys.js';

const ROW_COLUMNS =
  'import_id, row_no, file, line, raw, kind, external_id, profile, profile_hash, email_fingerprint, providers, outcome, code, field, hint';
const FACT_COLUMNS = 'import_id, fact_no, type, key, target, kind, rank, at, position';

/** Characters of COPY lines that are collected before they are sent. */
const BATCH_CHARACTERS = 512 * 1024;

/** Writes what the readers tell into the database as it comes, in batches, in constant memory. */
@Injectable()
export class StagingRepository {
  constructor(
    private readonly seal: ProfileSeal,
    private readonly vault: Vault,
    private readonly keys: ReferenceKeys,
  ) {}

  /** Begins to write one import's rows over one connection, whose transaction the caller owns. */
  writer(tx: PoolClient, importId: string): StagingWriter {
    return new StagingWriter(tx, importId, this.seal, this.vault, this.keys);
  }
}

/** Collects lines and sends them, one batch while the next is being collected; `flush` at the end. */
export class StagingWriter {
  private sending: Promise<void> = Promise.resolve();
  private rowLines: string[] = [];
  private factLines: string[] = [];
  private characters = 0;
  private rowNo = 0;
  private factNo = 0;

  constructor(
    private readonly tx: PoolClient,
    private readonly importId: string,
    private readonly seal: ProfileSeal,
    private readonly vault: Vault,
    private readonly keys: ReferenceKeys,
  ) {}

  /** The rows written so far. */
  get rows(): number {
    return this.rowNo;
  }

  /**
   * Adds a row of the file with this ordinal; a person's profile is sealed for its later place among the people, its cells for here.
   * @param kind of whom the file holds, for a rejected row that does not say; null: of both
   */
  async row(file: number, row: ReadRow, kind: PersonKind | null = null): Promise<void> {
    this.rowNo += 1;
    this.add(
      this.rowLines,
      copyLine([
        this.importId,
        this.rowNo,
        file,
        row.line,
        this.raw(row),
        ...(row.ok ? this.accepted(row) : rejected(row, kind)),
      ]),
    );
    if (this.characters > BATCH_CHARACTERS) await this.sendBatch();
  }

  /** Adds what a resource says beside the people. */
  async fact(fact: ReferenceFact): Promise<void> {
    this.factNo += 1;
    this.add(this.factLines, copyLine([this.importId, this.factNo, fact.type, ...this.factFields(fact)]));
    if (this.characters > BATCH_CHARACTERS) await this.sendBatch();
  }

  /** Sends what was collected, and waits until all of it has arrived. */
  async flush(): Promise<void> {
    await this.sendBatch();
    await this.sending;
  }

  /** Hands over what was collected as soon as the batch before has arrived. @throws what that one met */
  private async sendBatch(): Promise<void> {
    const [rows, facts] = [this.rowLines, this.factLines];
    this.rowLines = [];
    this.factLines = [];
    this.characters = 0;
    await this.sending;
    this.sending = this.send(rows, facts);
    this.sending.catch(() => undefined); // met by whoever waits for it
  }

  private async send(rows: string[], facts: string[]): Promise<void> {
    await this.copy(`COPY import_rows (${ROW_COLUMNS}) FROM STDIN`, rows);
    await this.copy(`COPY import_facts (${FACT_COLUMNS}) FROM STDIN`, facts);
  }

  private accepted({ person }: AcceptedRow): CopyValue[] {
    const key = { kind: person.kind, externalId: person.externalId };
    const profile = { email: person.email ?? null, firstName: person.firstName, lastName: person.lastName };
    return [
      person.kind,
      person.externalId,
      this.seal.seal(key, profile),
      this.seal.hash(profile),
      this.seal.emailFingerprint(profile.email),
      person.providers ?? [],
      'pending',
      null,
      null,
      null,
    ];
  }

  /** The cells as they were, kept until the plan is made and after it for rejected rows only. */
  private raw(row: ReadRow): Buffer {
    return this.vault.seal(rawPlace(this.importId, this.rowNo), row.raw);
  }

  private factFields(fact: ReferenceFact): CopyValue[] {
    switch (fact.type) {
      case 'alias':
        return [this.keys.of(fact.key), fact.externalId, fact.kind, null, null, null];
      case 'role':
        return [this.keys.of(fact.key), this.keys.of(fact.practitionerKey), null, null, null, null];
      case 'link':
        return [this.keys.of(fact.clientKey), this.keys.of(fact.providerKey), null, fact.rank, fact.at, fact.position];
    }
  }

  private add(lines: string[], line: string): void {
    lines.push(line);
    this.characters += line.length;
  }

  private async copy(sql: string, lines: string[]): Promise<void> {
    if (lines.length === 0) return;
    const stream = this.tx.query(copyFrom(sql));
    const done = new Promise<void>((resolve, reject) => {
      stream.once('finish', resolve);
      stream.once('error', reject);
    });
    stream.end(lines.join(''));
    await done;
  }
}

/** Where a row's cells are sealed. */
export function rawPlace(importId: string, rowNo: number): SealedPlace {
  return { table: 'import_rows', column: 'raw', row: `${importId}/${rowNo}` };
}

function rejected(row: RejectedRow, kind: PersonKind | null): CopyValue[] {
  return [row.kind ?? kind, row.externalId, null, null, null, [], 'rejected', row.code, row.field, row.hint];
}
