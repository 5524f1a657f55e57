import { Injectable } from '@nestjs/common';
import type { PoolClient } from 'pg';
import { Audit } from '../access/audit.js';
import type { Principal } from '../access/caller.js';
import { Clock } from '../config/clock.js';
import { Database } from '../database/database.js';
import { Problem } from '../http/problem.js';
import { CallLogRepository } from '../platform/call-log.repository.js';
import { Doorbell } from '../queue/doorbell.js';
import { USER_MANAGEMENT_QUEUE } from '../queue/queue-names.js';
import { CancelRepository } from './cancel.repository.js';
import { type ImportFile, ImportFiles } from './import-files.js';
import { standing } from './import-guards.js';
import { ImportSteps, INTERRUPTED } from './import-steps.service.js';
import type { ImportRecord, ImportRequest, ImportState } from './import-types.js';
import { hasEta, type ImportView, showImport } from './import-view.js';
import { ImportsRepository } from './imports.repository.js';
import { awaitTurn } from './order-lock.js';
import { readPeople } from './read/read-people.js';
import { UnreadableFile } from './read/unreadable-file.js';
import { RetryRepository } from './retry.repository.js';
import { signsOfLife } from './sign-of-life.js';
import { StagingRepository } from './staging.repository.js';
import { StagingWriter } from './staging-writer.js';
import { TotalsRepository } from './totals.repository.js';
import { readingOf, type UploadedFile } from './upload-parts.js';
import { UploadRoom } from './upload-room.js';

/** What somebody's word changes of an import. */
type Steering = (tx: PoolClient, record: ImportRecord) => Promise<void>;

/** Milliseconds between two signs of life of a reader. */
const ALIVE_MS = 5_000;

/** Imports: taking them in, showing them, and steering them. */
@Injectable()
export class ImportsService {
  constructor(
    private readonly database: Database,
    private readonly imports: ImportsRepository,
    private readonly counts: TotalsRepository,
    private readonly staging: StagingRepository,
    private readonly files: ImportFiles,
    private readonly uploads: UploadRoom,
    private readonly steps: ImportSteps,
    private readonly cancelling: CancelRepository,
    private readonly retrying: RetryRepository,
    private readonly calls: CallLogRepository,
    private readonly doorbell: Doorbell,
    private readonly audit: Audit,
    private readonly clock: Clock,
  ) {}

  /**
   * Reads an import to its end and stores its rows, in constant memory; planning and running follow by themselves.
   *
   * @param id the same for every run of one request; what an earlier run has read is not read again
   * @throws {Problem} 422 `unreadable-file` when a file as a whole can't be read, 422 `no-file` when there is none, 413,
   * 415; then nothing of it is imported
   */
  async create(id: string, request: ImportRequest, files: AsyncIterable<UploadedFile>): Promise<void> {
    if (!(await this.imports.begin(id, request))) {
      for await (const file of files) for await (const _ of file.content);
      return;
    }
    try {
      await this.stage(id, request, files);
    } catch (error) {
      const why = error instanceof Problem ? { code: error.type, detail: error.detail } : INTERRUPTED;
      await this.database.transaction((tx) => this.imports.failReading(tx, id, why), 'bulk');
      throw error;
    }
    this.steps.ring();
  }

  /** @throws {Problem} 404 */
  async show(id: string): Promise<ImportView> {
    return this.view(await this.find(id));
  }

  async list(limit: number, before?: { createdAt: string; id: string }): Promise<ImportView[]> {
    const records = await this.imports.list(limit, before);
    return Promise.all(records.map((record) => this.view(record)));
  }

  /**
   * Applies exactly the plan.
   *
   * @param overrides the guards that may be exceeded, by name
   * @param by who says so, for the audit trail
   * @throws {Problem} 404, 409 `wrong-state`, 409 `threshold-exceeded` with nothing sent
   */
  async apply(id: string, overrides: string[], by: Principal): Promise<ImportView> {
    return this.steer(id, ['planned'], async (tx, record) => {
      const [first, ...more] = standing(record.guards ?? [], overrides);
      if (first) {
        const names = [first, ...more].map((guard) => guard.name);
        const nameless = [first, ...more].some((guard) => guard.nameless);
        const why = nameless ? ' Some rejected rows do not say whom they name, who may be among those to delete.' : '';
        const detail = `The plan exceeds the threshold for ${names.join(', ')}; look at the rows behind it, then apply with override: ${JSON.stringify(names)}.${why}`;
        throw new Problem(409, 'threshold-exceeded', detail, { extensions: { guards: [first, ...more] } });
      }
      const used = standing(record.guards ?? [], []).map((guard) => guard.name);
      if (used.length > 0) {
        const subjects = { id, guards: used.join(',') };
        await this.audit.record({ by, action: 'import.override', subjects, outcome: 'accepted' }, tx);
      }
      await this.imports.wantApply(tx, id, overrides);
    });
  }

  /** Takes up again what failed, is in review, or was skipped because somebody changed it after the plan. */
  async retry(id: string): Promise<ImportView> {
    const work: Steering = async (tx, record) => {
      if (await this.retrying.retry(tx, record)) await this.imports.enter(tx, id, 'running', true);
    };
    return this.steer(id, ['running', 'completed'], work, awaitTurn);
  }

  /** Calls under way finish, nothing else of this import starts. */
  async pause(id: string): Promise<ImportView> {
    return this.steer(id, ['running'], async (tx, { applyWanted }) => {
      await this.cancelling.hold(tx, id);
      await this.imports.enter(tx, id, 'paused', applyWanted);
    });
  }

  /** One that was paused while it was applied is applied on; its people go when all of it is wanted. */
  async resume(id: string): Promise<ImportView> {
    return this.steer(id, ['paused'], async (tx, { applyWanted }) => {
      if (!applyWanted) await this.cancelling.release(tx, id);
      await this.imports.enter(tx, id, 'running', applyWanted);
    });
  }

  /** Calls under way finish, nothing else starts, and what was not sent is no longer wanted. */
  async cancel(id: string): Promise<ImportView> {
    return this.steer(id, ['staging', 'planned', 'running', 'paused'], async (tx, record) => {
      if (record.appliedAt) await this.cancelling.hold(tx, id);
      await this.imports.enter(tx, id, 'cancelled');
    });
  }

  private async stage(id: string, request: ImportRequest, files: AsyncIterable<UploadedFile>): Promise<void> {
    await this.uploads.transaction(async (tx) => {
      const writer = new StagingWriter(this.staging, tx, id, request);
      const read: ImportFile[] = [];
      const alive = this.sayAlive(id);
      for await (const { content, ...file } of files) {
        await this.stageFile(writer, request, { ...file, content: signsOfLife(content, alive) }, read);
      }
      if (read.length === 0) throw new Problem(422, 'no-file', 'The request holds no file; send at least one.');
      await writer.flush();
      const sealed = this.files.seal(id, read);
      if (!(await this.imports.staged(tx, id, sealed))) throw new Problem(408, INTERRUPTED.code, INTERRUPTED.detail);
    });
  }

  /** Says now and then that the sender is there, on another connection: the upload's own is in a transaction. */
  private sayAlive(id: string): () => void {
    let saidAt = 0;
    return () => {
      if (performance.now() - saidAt < ALIVE_MS) return;
      saidAt = performance.now();
      void this.imports.keepAlive(id).catch(() => undefined);
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
        else if (event.type === 'columns') [entry.columns, entry.ignored] = [event.columns, event.ignored];
        else if (event.type !== 'end') await writer.fact(event);
      }
    } catch (error) {
      if (!(error instanceof UnreadableFile)) throw error;
      const extensions = { file: file.name, line: error.line, code: error.code };
      throw new Problem(422, 'unreadable-file', `File ${ordinal}, line ${error.line}: ${error.hint}`, { extensions });
    }
  }

  /** @param before what the transaction waits for before it locks the import */
  private async steer(
    id: string,
    from: ImportState[],
    work: Steering,
    before?: (tx: PoolClient) => Promise<void>,
  ): Promise<ImportView> {
    await this.database.transaction(async (tx) => {
      await before?.(tx);
      await tx.query('SELECT 1 FROM imports WHERE id = $1 FOR UPDATE', [id]);
      const record = await this.find(id, tx);
      if (!from.includes(record.state)) {
        const detail = `The import is ${record.state}; this needs one that is ${from.join(' or ')}.`;
        throw new Problem(409, 'wrong-state', detail, { extensions: { state: record.state } });
      }
      await work(tx, record);
    }, 'bulk');
    this.steps.ring();
    this.doorbell.ring(USER_MANAGEMENT_QUEUE, 'import-steered');
    return this.show(id);
  }

  /** @throws {Problem} 404 */
  async find(id: string, sql?: Parameters<ImportsRepository['find']>[1]): Promise<ImportRecord> {
    const record = await this.imports.find(id, sql);
    if (!record)
      throw new Problem(404, 'import-not-found', 'No import with this id is known; GET /v1/imports lists them.');
    return record;
  }

  private async view(record: ImportRecord): Promise<ImportView> {
    const totals = await this.counts.totals(record);
    const tempo = hasEta(record) ? await this.calls.tempo(this.database.pool, record.appliedAt) : null;
    return showImport(record, totals, tempo, this.files.ignoredColumns(record));
  }
}
