import { Injectable } from '@nestjs/common';
import type { PoolClient } from 'pg';
import { Audit } from '../../audit/audit.js';
import { Env } from '../../config/env.js';
import { Database } from '../../database/database.js';
import { pollUntil } from '../../database/poll-until.js';
import { PrismaService } from '../../database/prisma.service.js';
import { Problem } from '../../http/problem/problem.js';
import { decodeCursor, type Page, pageOf } from '../../http/request/page.js';
import { PeopleCalls } from '../../people/people-calls.service.js';
import { OPEN_IMPORT_STATES } from '../../people/store/deleted-ids.repository.js';
import { USER_MANAGEMENT } from '../../platform/pauses/apis.js';
import { CallsHealth } from '../../platform/pauses/calls-health.js';
import { GONE_SECONDS, WorkerProcess } from '../../processes/worker-process.js';
import { limitsOf } from '../../queue/work/limiter.js';
import { WorkQueues } from '../../queue/work/work-queues.js';
import { openIfReadable } from '../../vault/unreadable-value.js';
import { cancellationText } from '../model/cancellation.js';
import type { ImportFile, ImportState } from '../model/import.js';
import { exceeded, type Guard } from '../model/import-guards.js';
import { type ImportRecord, ImportsRepository } from '../model/imports.repository.js';
import { unknownImport, wrongState } from '../model/problems.js';
import { ImportCounts } from '../run/import-counts.repository.js';
import { LaterStatements } from '../run/later-statements.js';
import { OutcomesRepository } from '../run/outcomes.repository.js';
import { WithdrawalRepository } from '../run/withdrawal.repository.js';
import { type CancellationResponse, type ImportResponse, type Pace, showImport } from './import-view.js';

/** Maximum people that one transaction of a retry locks. */
const RETRIED_AT_ONCE = 500;

/** Shows imports and their progress, and changes their states. */
@Injectable()
export class ImportsService {
  constructor(
    private readonly prisma: PrismaService,
    private readonly database: Database,
    private readonly imports: ImportsRepository,
    private readonly counts: ImportCounts,
    private readonly outcomes: OutcomesRepository,
    private readonly withdrawal: WithdrawalRepository,
    private readonly later: LaterStatements,
    private readonly env: Env,
    private readonly calls: PeopleCalls,
    private readonly platform: CallsHealth,
    private readonly worker: WorkerProcess,
    private readonly queues: WorkQueues,
    private readonly audit: Audit,
  ) {}

  /** @throws {Problem} 404 */
  async show(id: string): Promise<ImportResponse> {
    return this.view(this.known(await this.imports.find(id)));
  }

  /**
   * Waits until an import has ended or needs a decision, and shows it.
   *
   * @param seconds the maximum wait
   * @throws {Problem} 404
   */
  async waitUntilSettled(id: string, seconds: number, signal?: AbortSignal): Promise<ImportResponse> {
    const find = async () => this.known(await this.imports.find(id));
    const isSettled = ({ state }: ImportRecord) => state !== 'staging' && state !== 'running';
    // Counting many rows again and again would slow down the work that the caller waits for.
    if (seconds > 0) await pollUntil(seconds, find, isSettled, signal);
    return this.show(id);
  }

  /** Returns one page, newest first. */
  async list(limit: number, cursor?: string): Promise<Page<ImportResponse>> {
    const [createdAt, id] = decodeCursor<[string, string]>(cursor, 'time', 'uuid') ?? [];
    const records = await this.imports.list(limit + 1, createdAt && id ? { createdAt, id } : undefined);
    const page = pageOf(records, limit, (record) => [record.createdAt.toISOString(), record.id]);
    return { ...page, items: await Promise.all(page.items.map((record) => this.view(record))) };
  }

  /** The files of an import. @throws {Problem} 404 */
  async files(id: string): Promise<ImportFile[]> {
    return this.readableFiles(this.known(await this.imports.find(id)));
  }

  /**
   * Applies exactly the plan.
   *
   * @param overrides names of the guards that are confirmed
   * @throws {Problem} 404; 409 `wrong-state`; 409 `threshold-exceeded`, after which nothing is sent
   */
  async apply(id: string, overrides: string[]): Promise<ImportResponse> {
    return this.transition(id, ['planned'], async (tx, record) => {
      const outcome = passGuards(record.guards ?? [], overrides);
      await this.imports.enter(tx, id, 'running');
      await this.later.begin(tx, id);
      return outcome;
    });
  }

  /**
   * Retries the people of rows that failed or need review. Plans nothing again. Each batch is one transaction; after a crash,
   * the same request finds those that are left.
   */
  async retry(id: string): Promise<ImportResponse> {
    const batch = (work: (tx: PoolClient) => Promise<number>) =>
      this.change(id, ['running', 'completed'], async (tx) => {
        if ((await work(tx)) > 0) await this.imports.enter(tx, id, 'running');
      });
    await batch((tx) => this.outcomes.retryUnapplied(tx, id));
    const rowNos = await this.outcomes.unsuccessful(id);
    for (let at = 0; at < rowNos.length; at += RETRIED_AT_ONCE)
      await batch((tx) => this.outcomes.retry(tx, id, rowNos.slice(at, at + RETRIED_AT_ONCE)));
    return this.show(id);
  }

  /** No more rows are applied, and no more calls are made for people that the import stated last. */
  async pause(id: string): Promise<ImportResponse> {
    return this.transition(id, ['running'], (tx) => this.imports.enter(tx, id, 'paused'));
  }

  async resume(id: string): Promise<ImportResponse> {
    return this.transition(id, ['paused'], (tx) => this.imports.enter(tx, id, 'running'));
  }

  /** Skips all rows that were not applied, and withdraws new people and deletions for which nothing was sent. */
  async cancel(id: string): Promise<ImportResponse> {
    return this.transition(id, OPEN_IMPORT_STATES, (tx) => this.imports.cancel(tx, id));
  }

  /** What a cancel would do now. @throws {Problem} 404 */
  async cancellation(id: string): Promise<CancellationResponse> {
    this.known(await this.imports.find(id));
    const effect = await this.withdrawal.preview(id);
    return { ...effect, text: cancellationText(effect) };
  }

  /**
   * Changes an import in one transaction.
   *
   * @param work may return what the audit log records instead of `ok`
   */
  async transition(
    id: string,
    from: readonly ImportState[],
    work: (tx: PoolClient, record: ImportRecord) => Promise<unknown>,
  ): Promise<ImportResponse> {
    await this.change(id, from, work);
    return this.show(id);
  }

  private async change(...[id, from, work]: Parameters<ImportsService['transition']>): Promise<void> {
    await this.database.transaction(async (tx) => {
      const record = this.known(await this.imports.lock(tx, id));
      if (!from.includes(record.state)) throw wrongState(record.state, from);
      const outcome = await work(tx, record);
      await this.audit.store(await this.prisma.in(tx), typeof outcome === 'string' ? outcome : 'ok');
    }, 'bulk');
    void this.queues.of('imports').add(id);
  }

  /** @throws {Problem} 404 */
  private known(record: ImportRecord | undefined): ImportRecord {
    if (!record) throw unknownImport();
    this.audit.about('import', record.id);
    return record;
  }

  private async view(record: ImportRecord): Promise<ImportResponse> {
    this.audit.about('import', record.id);
    const totals = await this.counts.totals(record);
    const files = this.readableFiles(record);
    const offered = record.state === 'needs-mapping' ? await this.offeredColumns(record, files) : null;
    return showImport(record, totals, await this.pace(record), files, offered);
  }

  /** @returns none if they cannot be decrypted, which health reports */
  private readableFiles(record: ImportRecord): ImportFile[] {
    return openIfReadable(() => this.imports.filesOf(record)) ?? [];
  }

  /** The columns of the last files of the same kinds, by field, with the kind of the file if there are several. */
  private async offeredColumns(
    { openedAt }: ImportRecord,
    files: readonly ImportFile[],
  ): Promise<Record<string, string> | null> {
    const kinds = new Set(files.map(({ kind }) => kind));
    const columns = (await this.imports.filesBefore(openedAt, kinds)).flatMap(({ kind, csv }) => {
      const prefix = kinds.size > 1 ? `${kind}.` : '';
      const read = (csv?.mapping.columns ?? []).filter(({ field }) => field !== null && field !== 'status');
      const none = Object.entries(csv?.chosen ?? {}).filter(([, name]) => name === '');
      return [...read.map(({ field, name }) => [prefix + field, name]), ...none.map(([field]) => [prefix + field, ''])];
    });
    return columns.length === 0 ? null : Object.fromEntries(columns.reverse()); // of several columns, the first
  }

  /** The pace at which calls are sent, or why none can be given. */
  private async pace({ id, state }: ImportRecord): Promise<Pace> {
    const unknown = (etaUnknown: Pace['etaUnknown']): Pace => ({ callsPerSecond: null, others: 0, etaUnknown });
    if (state === 'paused') return unknown('paused');
    if (state !== 'running' && state !== 'planned') return unknown(null);
    if (!this.calls.isConfigured) return unknown('not-configured');
    const silentSeconds = await this.worker.secondsSince('worker');
    if (silentSeconds === null || silentSeconds > GONE_SECONDS) return unknown('no-worker');
    const stopped = await this.platform.stopped(USER_MANAGEMENT);
    if (stopped) return unknown(stopped.code);
    const { max, duration } = limitsOf(this.env.USER_MANAGEMENT_CALLS_PER_MINUTE);
    const others = await this.counts.callsOfOthers(id);
    return { callsPerSecond: (max / duration) * 1_000, others, etaUnknown: null };
  }
}

/**
 * Accepts guards that are confirmed.
 *
 * @returns which were exceeded, for the audit log
 * @throws {Problem} 409 `threshold-exceeded`
 */
function passGuards(guards: Guard[], overrides: string[]): string | undefined {
  const stopping = exceeded(guards, overrides);
  const names = (some: Guard[]) => some.map(({ name }) => name);
  if (stopping.length > 0) {
    const detail = `The plan needs confirmation: ${names(stopping).join(', ')}. Look at its rows, then apply it with override: ${JSON.stringify(names(stopping))}.`;
    throw new Problem('threshold-exceeded', detail, { extensions: { guards: stopping } });
  }
  const confirmed = names(exceeded(guards, []));
  return confirmed.length === 0 ? undefined : `override ${confirmed.join(',')}`;
}
