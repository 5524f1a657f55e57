import { Injectable } from '@nestjs/common';
import type { PoolClient } from 'pg';
import { Clock } from '../../config/clock.js';
import { Env } from '../../config/env.js';
import { Database } from '../../database/database.js';
import { Problem } from '../../http/problem/problem.js';
import type { PersonKind } from '../../people/model/person.js';
import { FormerIdsRepository } from '../../people/store/former-ids.repository.js';
import { IMPORT_QUEUE } from '../../queue/backend/queue-names.js';
import { QueueNotifier } from '../../queue/notifier/queue-notifier.js';
import { Vault } from '../../vault/vault.js';
import type { ImportFile, ImportRequest } from '../model/import.js';
import { ImportsRepository } from '../model/imports.repository.js';
import { readPeople } from '../parse/read-people.js';
import type { ReadRow, ResourceReference } from '../parse/row/import-row.js';
import { UnreadableFile } from '../parse/row/rejection.js';
import { ProviderCells } from './provider-cells.js';
import { type StagedRow, StagingRepository } from './staging.repository.js';
import { UploadConnectionPool } from './upload-connections.js';
import { readingOf, type UploadedFile } from './uploaded-files.js';

/** Milliseconds between two marks that a reader is at work. */
const ALIVE_MS = 5_000;

/** What is collected before it is stored: rows and references, and the characters of raw rows. */
const BATCH_ITEMS = 2_000;
const BATCH_CHARACTERS = 512 * 1024;

/** References between FHIR resources that are kept, for each row that may be. */
const REFERENCES_A_ROW = 10;

/** Why an import failed whose upload did not come to its end. */
export const INTERRUPTED = {
  code: 'interrupted',
  detail: 'The upload broke off before its end; nothing of it was imported: send it again.',
};

/** The import was cancelled, or given up because its reader seemed dead. */
class EndedMeanwhile extends Error {}

/** What is stored of a row is many times a short line: the limit on bytes alone would let one upload fill the disk. */
function tooMany(most: number, what: string): Problem {
  const detail = `An import may hold ${most.toLocaleString('en')} ${what} at most: split it (IMPORT_MAX_ROWS sets the limit).`;
  return new Problem(413, 'too-many-rows', detail);
}

function rejectsAsSnapshot(ordinal: number, file: string): Problem {
  const detail = `File ${ordinal} holds the rejected rows of an import; as a snapshot it would delete everybody who was right: import it with mode=upsert.`;
  return new Problem(422, 'rejected-rows', detail, { extensions: { file } });
}

async function* passing<T>(content: AsyncIterable<T>, passes: () => void): AsyncGenerator<T> {
  for await (const chunk of content) {
    passes();
    yield chunk;
  }
}

/** Reads uploads into staged imports. */
@Injectable()
export class ImportUploads {
  constructor(
    private readonly env: Env,
    private readonly clock: Clock,
    private readonly database: Database,
    private readonly imports: ImportsRepository,
    private readonly staging: StagingRepository,
    private readonly uploads: UploadConnectionPool,
    private readonly formerIds: FormerIdsRepository,
    private readonly vault: Vault,
    private readonly notifier: QueueNotifier,
  ) {}

  /**
   * Reads an import to its end and stores its rows, in constant memory; planning and running follow by themselves.
   *
   * @param id the same for every run of one request; what an earlier run has read is not read again
   * @throws {Problem} 422 `unreadable-file` when a file as a whole can't be read, 422 `no-file` when there is none, 413,
   * 415, 409 `renamed` for the default provider; then no row is imported
   */
  async create(id: string, request: ImportRequest, files: AsyncIterable<UploadedFile>): Promise<void> {
    const { defaultProvider } = request;
    const named = defaultProvider === undefined ? [] : [defaultProvider];
    await this.formerIds.refuse('provider', named, undefined, () => '/defaultProvider');
    const begun = { yes: false };
    try {
      // The connection comes first: an upload that finds none has begun nothing.
      await this.uploads.transaction(async (tx) => {
        begun.yes = await this.imports.begin(id, request);
        if (begun.yes) await this.stage(tx, id, request, files);
        else for await (const file of files) for await (const _ of file.content);
      });
    } catch (error) {
      if (!begun.yes) throw error;
      if (error instanceof EndedMeanwhile) throw await this.endedMeanwhile(id);
      const why = error instanceof Problem ? { code: error.type, detail: error.detail } : INTERRUPTED;
      await this.database.transaction((tx) => this.imports.fail(tx, id, 'reading', why), 'bulk');
      throw error;
    }
    this.notifier.notify(IMPORT_QUEUE, 'import-staged');
  }

  private async endedMeanwhile(id: string): Promise<Problem> {
    const isCancelled = (await this.imports.find(id))?.state === 'cancelled';
    if (!isCancelled) return new Problem(408, INTERRUPTED.code, INTERRUPTED.detail);
    const detail = 'The import was cancelled while it was read; nothing of it was imported.';
    return new Problem(409, 'import-cancelled', detail);
  }

  private async stage(
    tx: PoolClient,
    id: string,
    request: ImportRequest,
    files: AsyncIterable<UploadedFile>,
  ): Promise<void> {
    const cells = new ProviderCells(this.vault, request.defaultProvider);
    const writer = new StagingWriter(this.staging, cells, tx, id, request, this.env.IMPORT_MAX_ROWS);
    const read: ImportFile[] = [];
    const keepAlive = this.keepingAlive(id);
    for await (const { content, ...file } of files) {
      await this.stageFile(writer, request, { ...file, content: passing(content, keepAlive) }, read);
    }
    if (read.length === 0) throw new Problem(422, 'no-file', 'The request holds no file; send at least one.');
    await writer.flush();
    if (!(await this.imports.staged(tx, id, read))) throw new EndedMeanwhile();
  }

  /**
   * Records that the sender is there, on another connection: the upload's own is in a transaction.
   *
   * @returns to be called with each chunk; throws once the import was cancelled
   */
  private keepingAlive(id: string): () => void {
    let recordedAt = 0;
    let isWanted = true;
    return () => {
      if (!isWanted) throw new EndedMeanwhile();
      if (performance.now() - recordedAt < ALIVE_MS) return;
      recordedAt = performance.now();
      const recorded = (isBeingRead: boolean) => {
        isWanted = isBeingRead;
      };
      void this.imports.keepAlive(id).then(recorded, () => undefined);
    };
  }

  private async stageFile(
    writer: StagingWriter,
    request: ImportRequest,
    file: UploadedFile,
    read: ImportFile[],
  ): Promise<void> {
    const entry: ImportFile = { name: file.name };
    const ordinal = read.push(entry);
    const reading = readingOf(file, request.kind);
    const recognised = { ...reading, rows: 0 };
    entry.recognised = recognised;
    const kind = ({ providers: 'provider', clients: 'client', fhir: null } as const)[reading.kind];
    const whole = request.mode === 'snapshot';
    try {
      const options = { ...reading, idSystems: request.idSystems, now: this.clock.now(), whole };
      for await (const event of readPeople(file.content, options)) {
        if (event.type === 'row') {
          recognised.rows += 1;
          await writer.row(ordinal, event, kind);
        } else if (event.type === 'columns') {
          if (event.areRejects && whole) throw rejectsAsSnapshot(ordinal, file.name);
          [entry.columns, entry.ignored] = [event.columns, event.ignored];
        } else await writer.reference(event);
      }
    } catch (error) {
      if (!(error instanceof UnreadableFile)) throw error;
      const extensions = { file: file.name, line: error.line, code: error.code };
      throw new Problem(422, 'unreadable-file', `File ${ordinal}, line ${error.line}: ${error.hint}`, { extensions });
    }
  }
}

/** Stores what is read of one import, one batch while the next is collected: constant memory. `flush` at the end. */
class StagingWriter {
  private storing: Promise<void> = Promise.resolve();
  private rows: StagedRow[] = [];
  private references: ResourceReference[] = [];
  private characters = 0;
  private rowNo = 0;
  private referencesStored = 0;

  /** @param tx used by nobody else until `flush` */
  constructor(
    private readonly staging: StagingRepository,
    private readonly cells: ProviderCells,
    private readonly tx: PoolClient,
    private readonly importId: string,
    private readonly request: ImportRequest,
    private readonly mostRows: number,
  ) {}

  /** @param file its ordinal @param kind of the file's people, for a rejected row that does not say; null: of both */
  async row(file: number, row: ReadRow, kind: PersonKind | null): Promise<void> {
    const rowNo = ++this.rowNo;
    if (rowNo > this.mostRows) throw tooMany(this.mostRows, 'rows');
    this.rows.push(this.staging.staged(rowNo, file, row, kind, this.providersOf(row)));
    if (row.ok && row.person.kind === 'provider') this.cells.brings(row.person.externalId);
    this.characters += row.raw.length;
    if (this.characters > BATCH_CHARACTERS || this.rows.length === BATCH_ITEMS) await this.handOver();
  }

  async reference(reference: ResourceReference): Promise<void> {
    this.references.push(reference);
    const most = this.mostRows * REFERENCES_A_ROW;
    if (this.referencesStored + this.references.length > most) throw tooMany(most, 'references');
    if (this.references.length === BATCH_ITEMS) await this.handOver();
  }

  /** Waits until all that was collected is stored. */
  async flush(): Promise<void> {
    await this.handOver();
    await this.storing;
  }

  /** Stores the batch as soon as the one before is stored. @throws what that one met */
  private async handOver(): Promise<void> {
    const { rows, references, cells, tx, importId, staging } = this;
    const first = this.referencesStored + 1;
    this.referencesStored += references.length;
    [this.rows, this.references, this.characters] = [[], [], 0];
    const named = new Set(rows.flatMap(({ providers }) => providers ?? []));
    if (cells.lacks(named)) {
      await this.storing;
      await cells.lookUp(tx, named);
    }
    const batch = rows.length > 0 ? staging.batch(importId, rows, cells) : undefined;
    await this.storing;
    const store = async () => {
      if (batch) await staging.storeRows(tx, importId, batch);
      await staging.storeReferences(tx, importId, references, first);
    };
    this.storing = store();
    this.storing.catch(() => undefined); // thrown by the next call
  }

  /** An empty list of FHIR rows that came back as CSV says nothing: their providers are named by other resources. */
  private providersOf(row: ReadRow): readonly string[] | null {
    if (!row.ok || row.person.kind === 'provider') return [];
    const { kind, defaultProvider } = this.request;
    const { providers } = row.person;
    if (providers === undefined || (kind === 'fhir' && providers.length === 0)) return null;
    return providers.length === 0 && defaultProvider !== undefined ? [defaultProvider] : providers;
  }
}
