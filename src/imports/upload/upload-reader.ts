import type { PoolClient } from 'pg';
import { Problem } from '../../http/problem/problem.js';
import { IMPORT_KINDS, type ImportFile, type ImportKind, type ImportRequest } from '../model/import.js';
import type { ReadImport } from '../model/imports.repository.js';
import { MergedCharts } from '../model/merged-charts.js';
import { detectFile } from '../parse/detect-file.js';
import { ProviderReferences, TooManyReferences } from '../parse/fhir/provider-references.js';
import { readPeople, readStored } from '../parse/read-people.js';
import { type ChosenColumns, FIELDS, type FileKind, type ReadEvent } from '../parse/row/import-row.js';
import { UnreadableFile } from '../parse/row/rejection.js';
import { Pages } from './pages.js';
import { resolveReferences } from './resolve-references.js';
import type { RowCorrector } from './row-corrector.js';
import type { StagingRepository } from './staging.repository.js';
import { StagingWriter, tooMany } from './staging-writer.js';
import type { StoredRecords } from './stored-records.repository.js';
import { peek, type UploadedFile } from './uploaded-files.js';

/** References that are kept in memory until all files are read. */
const MAX_REFERENCES = 1_000_000;

/** Reads the files of one import, in order. Call `end` after the last one. */
export class UploadReader {
  private readonly files: ImportFile[] = [];
  private readonly writer: StagingWriter;
  private readonly stored: ReturnType<StoredRecords['writer']>;
  private readonly references: ProviderReferences;
  private readonly merges = new MergedCharts(MAX_REFERENCES);
  private readonly pages = new Pages();
  private isDefaultChecked = false;
  private waits = false;

  constructor(
    private readonly staging: StagingRepository,
    private readonly records: StoredRecords,
    private readonly corrector: RowCorrector,
    private readonly tx: PoolClient,
    private readonly importId: string,
    private readonly request: ImportRequest,
    private readonly now: Date,
    mostRows: number,
    lastRow: number,
  ) {
    this.writer = new StagingWriter(staging, tx, importId, request, mostRows, lastRow);
    this.stored = records.writer(tx, importId);
    this.references = new ProviderReferences(MAX_REFERENCES, request.idSystems);
  }

  /** @throws {Problem} 415 or 422 if the file cannot be read as a whole */
  async file({ name, field, mediaType, content }: UploadedFile): Promise<void> {
    const { beginning, whole } = await peek(content);
    const detected = detectFile({ name, field, mediaType, beginning, wanted: this.request.kind });
    const file: ImportFile = { name, ...detected, rows: 0, emptyIds: 0 };
    this.checkFormats(file);
    this.files.push(file);
    if (file.kind === 'clients' || file.kind === 'both') await this.checkDefaultProvider();
    const columns = this.columnsFor(file.kind);
    const { mode, idSystems, encounterSince } = this.request;
    const options = { ...detected, columns, idSystems, encounterSince, now: this.now, whole: mode === 'snapshot' };
    await this.read(readPeople(whole, { ...options, isStored: this.waits }), file, this.files.length);
  }

  /** Everything was read. @throws {Problem} 422 */
  async end(): Promise<ReadImport> {
    if (this.files.length === 0) throw new Problem('no-file', 'The request contains no file. Send at least one.');
    await this.writer.flush();
    await this.recheck();
    let lostProviders = 0;
    if (this.isFhir()) {
      await this.checkDefaultProvider();
      if (this.request.mode === 'snapshot') this.pages.check();
      const { tx, importId, references, staging, request } = this;
      lostProviders = await resolveReferences(tx, importId, references, staging, request.mode === 'upsert');
      await staging.storeMerges(tx, importId, this.merges.resolve(references));
    }
    return this.result(this.files, lostProviders);
  }

  /** Reads the stored records of files that waited for their columns. @throws {Problem} 422 `unknown-column` */
  async mapped(files: ImportFile[]): Promise<ReadImport> {
    for (const [at, file] of files.entries()) {
      const { csv } = file;
      if (!csv?.isStored) continue;
      const columns = { ...csv.chosen, ...this.columnsFor(file.kind) };
      const options = {
        kind: file.kind,
        columns,
        headerLine: csv.headerLine,
        now: this.now,
        whole: this.request.mode === 'snapshot',
      };
      const events = readStored(this.records.read(this.tx, this.importId, at + 1), csv.header, options);
      if (file.kind === 'clients' || file.kind === 'both') await this.checkDefaultProvider();
      await this.read(events, file, at + 1);
      if (this.waits) break;
      csv.isStored = false;
      await this.records.delete(this.tx, this.importId, at + 1);
    }
    await this.writer.flush();
    await this.recheck();
    return this.result(files, 0);
  }

  private async read(batches: AsyncIterable<ReadEvent[]>, file: ImportFile, ordinal: number): Promise<void> {
    try {
      for await (const events of batches) {
        for (const event of events) {
          if (event.type === 'mapping' && this.mustWait(event, file)) {
            if (this.files.length === 0) return; // its records are stored already
          } else this.take(event, file, ordinal);
        }
        await this.writer.storeFull();
        await this.stored.storeFull(ordinal);
      }
      await this.stored.store(ordinal);
    } catch (error) {
      if (error instanceof TooManyReferences) throw tooMany(MAX_REFERENCES, 'references');
      if (!(error instanceof UnreadableFile)) throw error;
      const extensions = { file: file.name, line: error.line, code: error.code };
      const detail = `${file.name}, line ${error.line}: ${error.hint}`;
      if (error.code === 'unknown-column') throw new Problem('unknown-column', detail, { extensions });
      throw new Problem('unreadable-file', detail, { extensions });
    }
  }

  /** Keeps the mapping of a file. @returns true if its records must be stored until the columns are chosen */
  private mustWait({ header, mapping, line }: Extract<ReadEvent, { type: 'mapping' }>, file: ImportFile): boolean {
    if (mapping.isRejectedCsv && this.request.mode === 'snapshot') throw rejectsAsSnapshot(file.name);
    if (mapping.question) this.waits = true;
    const chosen = { ...file.csv?.chosen, ...this.columnsFor(file.kind) };
    file.csv = { header, headerLine: line, mapping, chosen, isStored: this.waits };
    return this.waits;
  }

  private take(event: ReadEvent, file: ImportFile, ordinal: number): void {
    const { type } = event;
    if (type === 'row') this.writer.row(ordinal, event, file);
    // References need the rows, too.
    if (type === 'record') this.stored.add(event.record);
    else if (type === 'mention') this.writer.mention(event.texts);
    else if (type === 'page') this.pages.add(file.name, event);
    else if (type === 'merge') this.merges.add(event, ordinal);
    else if (type !== 'mapping' && file.kind === 'fhir') this.references.add(event);
  }

  private checkFormats({ name, kind, format }: ImportFile): void {
    const refuse = (detail: string) => {
      throw new Problem('wrong-part', detail, { extensions: { file: name } });
    };
    const first = this.files[0];
    if (first && (first.kind === 'fhir') !== (kind === 'fhir'))
      refuse('FHIR and other files cannot be one import. Send them separately.');
    if (this.waits && format !== 'csv')
      refuse('The columns of an earlier file must be chosen first. Send JSON lines as a separate import.');
  }

  private async checkDefaultProvider(): Promise<void> {
    // Providers in files that wait for their columns are unknown until then.
    if (this.isDefaultChecked || this.waits) return;
    this.isDefaultChecked = true;
    await this.writer.checkDefaultProvider();
  }

  /** Clients may come before the providers that they name. */
  private async recheck(): Promise<void> {
    const { mustRecheck, providers } = this.writer;
    if (mustRecheck) await this.corrector.recheckProviders(this.tx, this.importId, providers);
  }

  /** The chosen columns for one kind of file. */
  private columnsFor(kind: FileKind): ChosenColumns {
    const { columns } = this.request;
    const chosen = FIELDS.map((field) => [field, columns[`${kind}.${field}`] ?? columns[field]] as const);
    return Object.fromEntries(chosen.filter(([, column]) => column !== undefined));
  }

  private isFhir(): boolean {
    return this.files[0]?.kind === 'fhir';
  }

  private result(files: readonly ImportFile[], lostProviders: number): ReadImport {
    const kinds = new Set(files.map(({ kind }) => kind));
    const [only] = kinds;
    const kind: ImportKind = IMPORT_KINDS.find((one) => kinds.size === 1 && one === only) ?? 'mixed';
    const state = this.waits ? 'needs-mapping' : 'staging';
    return { state, kind, files, mentioned: [...this.writer.mentioned], lostProviders };
  }
}

function rejectsAsSnapshot(file: string): Problem {
  const detail = `${file} contains the rejected rows of an import. As a snapshot it would delete everyone else. Import it with mode=upsert.`;
  return new Problem('rejected-rows', detail, { extensions: { file } });
}
