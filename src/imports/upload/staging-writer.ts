import type { PoolClient } from 'pg';
import { Problem } from '../../http/problem/problem.js';
import type { PersonKind } from '../../people/rules/person.js';
import { missingField, profileOf } from '../../people/rules/person-field-rules.js';
import type { ImportFile, ImportRequest } from '../model/import.js';
import { ignoredProviderColumns } from '../parse/csv/column-names.js';
import type { FileKind, ImportedPerson, ReadRow } from '../parse/row/import-row.js';
import { type Rejection, rejection } from '../parse/row/rejection.js';
import { cellsOf } from '../parse/row/validate-person.js';
import { KnownProviders, type ProviderStatus } from './known-providers.js';
import { mentionedIds } from './mentioned-ids.js';
import type { StagedRow, StagingRepository } from './staging.repository.js';

/** A batch is stored at this many rows, or above this many characters of rejected cells and mentions. */
const BATCH_ROWS = 2_000;
const BATCH_CHARACTERS = 1024 * 1024;

/** With only a limit on bytes, many short lines could fill the disk. */
export function tooMany(most: number, what: string): Problem {
  const detail = `An import may contain at most ${most.toLocaleString('en')} ${what}. Split it; IMPORT_MAX_ROWS sets the limit.`;
  return new Problem('too-many-rows', detail);
}

type Row = StagedRow & { of: ImportFile };

/**
 * Checks the rows of an upload against the known people, and stores them: one batch while the next one is read, in
 * bounded memory. Call `storeFull` now and then, and `flush` at the end.
 */
export class StagingWriter {
  /** Ids of known people in cells with line breaks. */
  readonly mentioned = new Set<string>();
  readonly providers: KnownProviders;
  /** A provider came after a client whose provider was unknown. */
  mustRecheck = false;
  private hasUnknown = false;
  private storing: Promise<void> = Promise.resolve();
  private rows: Row[] = [];
  private texts: string[] = [];
  private characters = 0;

  /**
   * @param tx exclusively used by this writer until `flush`
   * @param rowNo of the last row that was stored before
   */
  constructor(
    private readonly staging: StagingRepository,
    private readonly tx: PoolClient,
    private readonly importId: string,
    private readonly request: Pick<ImportRequest, 'defaultProvider'>,
    private readonly mostRows: number,
    private rowNo = 0,
  ) {
    this.providers = new KnownProviders(tx, importId);
  }

  /** @param file its ordinal @param of the file, whose counts are updated */
  row(file: number, row: ReadRow, of: ImportFile): void {
    this.rowNo += 1;
    if (this.rowNo > this.mostRows) throw tooMany(this.mostRows, 'rows');
    of.rows += 1;
    if (row.is === 'rejected') {
      if (row.code === 'missing-field' && row.field === 'externalId') of.emptyIds += 1;
      row.kind ??= PEOPLE[of.kind];
      this.count(Object.values(row.cells));
    }
    // Computed now, while the batch before is stored. A part of a person is completed first.
    const hash = row.is === 'person' && !row.isPartial ? this.staging.hash(row.person) : undefined;
    this.rows.push({ rowNo: this.rowNo, file, row, of, hash });
  }

  mention(texts: readonly string[]): void {
    this.texts.push(...texts);
    this.count(texts);
  }

  /** Stores the batch if it is full, as soon as the one before is stored. @throws the error of that one */
  async storeFull(): Promise<void> {
    if (this.rows.length >= BATCH_ROWS || this.characters > BATCH_CHARACTERS) await this.handOver();
  }

  /** Waits until everything is stored. */
  async flush(): Promise<void> {
    await this.handOver();
    await this.storing;
  }

  /** @throws {Problem} 422 if the default provider is unknown */
  async checkDefaultProvider(): Promise<void> {
    const { defaultProvider } = this.request;
    if (defaultProvider === undefined) return;
    await this.flush();
    await this.providers.lookUp([defaultProvider]);
    if (this.providers.of(defaultProvider) === 'known') return;
    const detail = `The default provider ${defaultProvider} is unknown. Correct the id, or import the provider first.`;
    throw new Problem('unknown-provider', detail, { pointer: '/defaultProvider' });
  }

  private count(texts: readonly string[]): void {
    for (const { length } of texts) this.characters += length;
  }

  private async handOver(): Promise<void> {
    const { rows, texts } = this;
    [this.rows, this.texts, this.characters] = [[], [], 0];
    await this.storing;
    if (rows.length === 0 && texts.length === 0) return;
    this.storing = this.store(rows, texts);
    this.storing.catch(() => undefined); // thrown by the next call
  }

  private async store(rows: Row[], texts: string[]): Promise<void> {
    if (texts.length > 0) await this.storeMentions(texts);
    await this.completePartial(rows);
    // Providers first, because clients of the same batch may name them.
    const isClient = ({ row }: Row) => row.is === 'person' && row.person.kind === 'client';
    await this.storeChecked(rows.filter((row) => !isClient(row)));
    await this.storeChecked(rows.filter(isClient));
  }

  private async storeChecked(rows: Row[]): Promise<void> {
    await this.providers.lookUp(rows.flatMap(({ row }) => (row.is === 'person' ? (row.person.providers ?? []) : [])));
    for (const one of rows) {
      if (one.row.is !== 'person') continue;
      if (one.row.person.kind === 'provider' && this.hasUnknown) this.mustRecheck = true;
      one.row = this.checked(one.row);
      if (one.row.is === 'rejected' && one.row.code === 'unknown-provider') this.hasUnknown = true;
    }
    await this.staging.store(this.tx, this.importId, rows);
  }

  private async storeMentions(texts: string[]): Promise<void> {
    const { rows } = await this.tx.query<{ id: string }>(
      `SELECT external_id AS id FROM people
       WHERE kind = ANY (enum_range(NULL::person_kind)) AND external_id = ANY ($1::text[]) AND wanted`,
      [[...mentionedIds(texts)]],
    );
    for (const { id } of rows) this.mentioned.add(id);
  }

  /** A part of a person's record leaves unchanged what it does not show. */
  private async completePartial(rows: Row[]): Promise<void> {
    for (const kind of ['provider', 'client'] as const) {
      const partial = rows.flatMap(({ row }) =>
        row.is === 'person' && row.isPartial && row.person.kind === kind ? [row.person] : [],
      );
      if (partial.length === 0) continue;
      const ids = partial.map(({ externalId }) => externalId);
      const known = await this.staging.knownProfiles(this.tx, kind, ids);
      for (const person of partial) Object.assign(person, { ...known.get(person.externalId), ...profileOf(person) });
    }
  }

  /** The row, or its rejection because of its providers or, in a part of a record, because of what is missing. */
  private checked(row: ReadRow & { is: 'person' }): ReadRow {
    const { person } = row;
    const missing = missingField(person.kind, person);
    const fault = missing
      ? rejection('missing-field', { field: missing, isUnknown: row.isPartial === true })
      : person.kind === 'client' && this.providersFault(person);
    if (!fault) return row;
    const { kind, externalId } = person;
    return { type: 'row', line: row.line, is: 'rejected', kind, externalId, cells: cellsOf(person), ...fault };
  }

  private providersFault(person: ImportedPerson): Rejection | undefined {
    const { defaultProvider } = this.request;
    if (person.providers?.length === 0) {
      if (defaultProvider === undefined) return rejection('no-provider', { field: 'providers' });
      person.providers = [defaultProvider];
    }
    for (const id of person.providers ?? []) {
      const status = this.providers.of(id);
      if (status === 'renamed') return rejection('renamed', { field: 'providers' });
      if (status !== 'known' && id !== defaultProvider) return unknownProvider(id, status);
    }
    if (person.providers) person.providers = person.providers.map((id) => this.providers.spelling(id));
    return undefined;
  }
}

/** The kind of rejected rows of a file that do not name it. */
const PEOPLE: Partial<Record<FileKind, PersonKind>> = { providers: 'provider', clients: 'client' };

/**
 * The hint for clients without a provider. Names the ignored columns of their file that may contain providers, so that it
 * is not stored with the row: names of columns are stored encrypted only.
 */
export function noProviderHint({ csv }: ImportFile): string {
  return rejection('no-provider', { columns: csv ? ignoredProviderColumns(csv.mapping) : [] }).hint;
}

export function unknownProvider(id: string, status: ProviderStatus): Rejection {
  const detail = { hasSeparator: /[,;]/.test(id), isProviderRejected: status === 'rejected' };
  return rejection('unknown-provider', { field: 'providers', ...detail });
}
