import { Injectable } from '@nestjs/common';
import type { PoolClient } from 'pg';
import { Clock } from '../../config/clock.js';
import { Env } from '../../config/env.js';
import { Database } from '../../database/database.js';
import { Problem } from '../../http/problem/problem.js';
import { IMPORT_QUEUE } from '../../queue/backend/queue-names.js';
import { QueueNotifier } from '../../queue/notifier/queue-notifier.js';
import { type ImportFile, ImportFiles } from '../model/import-files.js';
import type { ImportRequest } from '../model/import-types.js';
import { ImportsRepository } from '../model/imports.repository.js';
import { readPeople } from '../parse/read-people.js';
import { UnreadableFile } from '../parse/row/rejection.js';
import { StagingRepository } from './staging.repository.js';
import { StagingWriter } from './staging-writer.js';
import { UploadConnectionPool } from './upload-connections.js';
import { readingOf, type UploadedFile } from './uploaded-files.js';

/** Milliseconds between two marks that a reader is at work. */
const ALIVE_MS = 5_000;

/** Why an import failed whose upload did not come to its end. */
export const INTERRUPTED = {
  code: 'interrupted',
  detail: 'The upload broke off before its end; nothing of it was imported: send it again.',
};

/** The import was cancelled, or given up because its reader seemed dead. */
class EndedMeanwhile extends Error {}

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
    private readonly files: ImportFiles,
    private readonly uploads: UploadConnectionPool,
    private readonly notifier: QueueNotifier,
  ) {}

  /**
   * Reads an import to its end and stores its rows, in constant memory; planning and running follow by themselves.
   *
   * @param id the same for every run of one request; what an earlier run has read is not read again
   * @throws {Problem} 422 `unreadable-file` when a file as a whole can't be read, 422 `no-file` when there is none, 413,
   * 415; then nothing of it is imported
   */
  async create(id: string, request: ImportRequest, files: AsyncIterable<UploadedFile>): Promise<void> {
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
      await this.database.transaction((tx) => this.imports.failReading(tx, id, why), 'bulk');
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
    const writer = new StagingWriter(this.staging, tx, id, request, this.env.IMPORT_MAX_ROWS);
    const read: ImportFile[] = [];
    const keepAlive = this.keepingAlive(id);
    for await (const { content, ...file } of files) {
      await this.stageFile(writer, request, { ...file, content: passing(content, keepAlive) }, read);
    }
    if (read.length === 0) throw new Problem(422, 'no-file', 'The request holds no file; send at least one.');
    await writer.flush();
    if (!(await this.imports.staged(tx, id, this.files.seal(id, read)))) throw new EndedMeanwhile();
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
    const kind = ({ providers: 'provider', clients: 'client', fhir: null } as const)[reading.kind];
    const whole = request.mode === 'snapshot';
    try {
      const options = { ...reading, idSystems: request.idSystems, now: this.clock.now(), whole };
      for await (const event of readPeople(file.content, options)) {
        if (event.type === 'row') await writer.row(ordinal, event, kind);
        else if (event.type === 'columns') {
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
