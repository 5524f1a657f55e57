import { Injectable } from '@nestjs/common';
import type { PoolClient } from 'pg';
import { Clock } from '../../config/clock.js';
import { Env } from '../../config/env.js';
import { Database } from '../../database/database.js';
import { Problem } from '../../http/problem/problem.js';
import { type ImportFile, ImportFiles } from '../model/import-files.js';
import type { ImportRequest } from '../model/import-types.js';
import { ImportsRepository } from '../model/imports.repository.js';
import { readPeople } from '../parse/read-people.js';
import { UnreadableFile } from '../parse/text/unreadable-file.js';
import { ImportSteps, INTERRUPTED } from '../run/import-steps.service.js';
import { StagingRepository } from '../upload/staging.repository.js';
import { StagingWriter } from '../upload/staging-writer.js';
import { UploadConnectionPool } from '../upload/upload-connections.js';
import { readingOf, type UploadedFile } from '../upload/upload-parts.js';

/** Milliseconds between two signs of life of a reader. */
const ALIVE_MS = 5_000;

/** The import was cancelled, or given up by somebody who took its reader for dead. */
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

/** Taking imports in. */
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
    private readonly steps: ImportSteps,
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
      // The place comes first: who finds none has begun nothing.
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
    this.steps.notify();
  }

  private async endedMeanwhile(id: string): Promise<Problem> {
    if ((await this.imports.find(id))?.state !== 'cancelled')
      return new Problem(408, INTERRUPTED.code, INTERRUPTED.detail);
    return new Problem(
      409,
      'import-cancelled',
      'The import was cancelled while it was read; nothing of it was imported.',
    );
  }

  private async stage(
    tx: PoolClient,
    id: string,
    request: ImportRequest,
    files: AsyncIterable<UploadedFile>,
  ): Promise<void> {
    const writer = new StagingWriter(this.staging, tx, id, request, this.env.IMPORT_MAX_ROWS);
    const read: ImportFile[] = [];
    const alive = this.sayAlive(id);
    for await (const { content, ...file } of files) {
      await this.stageFile(writer, request, { ...file, content: passing(content, alive) }, read);
    }
    if (read.length === 0) throw new Problem(422, 'no-file', 'The request holds no file; send at least one.');
    await writer.flush();
    if (!(await this.imports.staged(tx, id, this.files.seal(id, read)))) throw new EndedMeanwhile();
  }

  /**
   * Says now and then that the sender is there, on another connection: the upload's own is in a transaction.
   *
   * @returns to be called with each chunk; throws once the import was cancelled
   */
  private sayAlive(id: string): () => void {
    let saidAt = 0;
    let isWanted = true;
    return () => {
      if (!isWanted) throw new EndedMeanwhile();
      if (performance.now() - saidAt < ALIVE_MS) return;
      saidAt = performance.now();
      const said = (isBeingRead: boolean) => {
        isWanted = isBeingRead;
      };
      void this.imports.keepAlive(id).then(said, () => undefined);
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
    const options = { ...reading, idSystems: request.idSystems, now: this.clock.now(), whole };
    try {
      for await (const event of readPeople(file.content, options)) {
        if (event.type === 'row') await writer.row(ordinal, event, kind);
        else if (event.type === 'columns') {
          if (event.areRejects && request.mode === 'snapshot') throw rejectsAsSnapshot(ordinal, file.name);
          [entry.columns, entry.ignored] = [event.columns, event.ignored];
        } else if (event.type !== 'end') await writer.fact(event);
      }
    } catch (error) {
      if (!(error instanceof UnreadableFile)) throw error;
      const extensions = { file: file.name, line: error.line, code: error.code };
      throw new Problem(422, 'unreadable-file', `File ${ordinal}, line ${error.line}: ${error.hint}`, { extensions });
    }
  }
}
