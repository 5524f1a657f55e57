import { setTimeout as delay } from 'node:timers/promises';
import { Injectable } from '@nestjs/common';
import type { PoolClient } from 'pg';
import { Audit } from '../../access/audit/audit.js';
import { KEEP_ALIVE_MS, type SentTogether } from '../../access/guard/event-streams.js';
import { Database } from '../../database/database.js';
import { Problem } from '../../http/problem/problem.js';
import { decodeCursor, type Page, pageOf } from '../../http/request/page.js';
import { pollUntil } from '../../http/request/waiting.js';
import { openBlocks } from '../../people/model/circuit-breaker.js';
import { PlatformPeople } from '../../people/reconcile/platform-people.js';
import { BreakersRepository } from '../../people/store/breakers.repository.js';
import { RateLimiterRepository } from '../../platform/rate-limit/rate-limiter.repository.js';
import { IMPORT_QUEUE, USER_MANAGEMENT_QUEUE } from '../../queue/backend/queue-names.js';
import { QueueNotifier } from '../../queue/notifier/queue-notifier.js';
import { ifReadable } from '../../vault/unreadable-value.js';
import type { ImportFile, ImportState } from '../model/import.js';
import { exceeded, type Guard } from '../model/import-guards.js';
import { type ImportRecord, ImportsRepository } from '../model/imports.repository.js';
import { OutcomesRepository } from '../run/outcomes.repository.js';
import { type EtaUnknown, type ImportResponse, showImport } from './import-view.js';

/** Milliseconds between two looks for a watcher; and the least rest after one, in times of what it took. */
const LOOK_MS = 500;
const LOOK_REST = 10;

/** Imports: showing them, their progress, and steering them. */
@Injectable()
export class ImportsService {
  constructor(
    private readonly database: Database,
    private readonly imports: ImportsRepository,
    private readonly outcomes: OutcomesRepository,
    private readonly calls: RateLimiterRepository,
    private readonly platform: PlatformPeople,
    private readonly breakers: BreakersRepository,
    private readonly notifier: QueueNotifier,
    private readonly audit: Audit,
  ) {}

  /** @throws {Problem} 404 */
  async show(id: string): Promise<ImportResponse> {
    return this.view(this.known(await this.imports.find(id)));
  }

  /** Shows an import once it has ended, or waits for a decision. @param seconds to wait at most @throws {Problem} 404 */
  async awaitRest(id: string, seconds: number, signal?: AbortSignal): Promise<ImportResponse> {
    const find = async () => this.known(await this.imports.find(id));
    const isAtRest = ({ state }: ImportRecord) => state !== 'staging' && state !== 'running';
    // Counting many rows again and again would slow down the work that is waited for.
    if (seconds > 0) await pollUntil(seconds, find, isAtRest, signal);
    return this.show(id);
  }

  /** `progress` events, one for each change, until the import ends. @throws {Problem} 404 */
  async progress(id: string, signal: AbortSignal): Promise<AsyncGenerator<SentTogether>> {
    const first = await this.show(id);
    await this.audit.commit();
    return this.progressFrom(first, signal);
  }

  /** One page, the newest first. */
  async list(limit: number, cursor?: string): Promise<Page<ImportResponse>> {
    const [createdAt, id] = decodeCursor<[string, string]>(cursor, 'time', 'uuid') ?? [];
    const records = await this.imports.list(limit + 1, createdAt && id ? { createdAt, id } : undefined);
    const page = pageOf(records, limit, (record) => [record.createdAt.toISOString(), record.id]);
    return { ...page, items: await Promise.all(page.items.map((record) => this.view(record))) };
  }

  /** What the files of an import are called, in their order. @throws {Problem} 404 */
  async files(id: string): Promise<ImportFile[]> {
    return this.readableFiles(this.known(await this.imports.find(id)));
  }

  /**
   * Applies exactly the plan.
   *
   * @param overrides the guards that may be exceeded, by name
   * @throws {Problem} 404, 409 `wrong-state`, 409 `threshold-exceeded` with nothing sent
   */
  async apply(id: string, overrides: string[]): Promise<ImportResponse> {
    return this.steer(id, ['planned'], async (tx, record) => {
      const outcome = passGuards(record.guards ?? [], overrides);
      await this.imports.wantApply(tx, id, overrides);
      return outcome;
    });
  }

  /** Takes up again what failed, is in review, or was skipped because it was changed after the plan. See `apply`. */
  async retry(id: string, overrides: string[]): Promise<ImportResponse> {
    return this.steer(
      id,
      ['running', 'completed'],
      async (tx, record) => {
        const guards = await this.outcomes.retry(tx, record);
        if (!guards) return undefined;
        const outcome = passGuards(guards, overrides);
        await this.imports.enter(tx, id, 'running', true);
        return outcome;
      },
      (tx) => this.imports.lock(tx),
    );
  }

  /** Calls under way finish, nothing else of this import starts. */
  async pause(id: string): Promise<ImportResponse> {
    return this.steer(id, ['running'], async (tx, { applyWanted }) => {
      await this.imports.enter(tx, id, 'paused', applyWanted);
      await this.calls.awaitGrants(tx);
    });
  }

  /** One that was paused while it was applied is applied on; its people go when all of it is wanted. */
  async resume(id: string): Promise<ImportResponse> {
    return this.steer(id, ['paused'], (tx, { applyWanted }) => this.imports.enter(tx, id, 'running', applyWanted));
  }

  /** Calls under way finish, nothing else starts, and what was not sent is no longer wanted. */
  async cancel(id: string): Promise<ImportResponse> {
    return this.steer(id, ['staging', 'planned', 'running', 'paused'], async (tx, { appliedAt }) => {
      await this.imports.enter(tx, id, 'cancelled');
      if (appliedAt) await this.calls.awaitGrants(tx);
    });
  }

  private async *progressFrom(first: ImportResponse, signal: AbortSignal): AsyncGenerator<SentTogether> {
    let view = first;
    let tookMs = 0;
    let sent = '';
    let sentAt = performance.now();
    for (;;) {
      const shown = JSON.stringify(view);
      if (shown !== sent || performance.now() - sentAt > KEEP_ALIVE_MS) {
        yield shown === sent ? [] : [{ event: 'progress', data: view }];
        sentAt = performance.now();
      }
      sent = shown;
      if (signal.aborted || ['completed', 'cancelled', 'failed'].includes(view.state)) return;
      await delay(Math.max(LOOK_MS, tookMs * LOOK_REST), undefined, { signal }).catch(() => undefined);
      const begunAt = performance.now();
      view = await this.show(first.id);
      tookMs = performance.now() - begunAt;
    }
  }

  /**
   * @param work may say what the audit trail is told instead of `ok`
   * @param before what the transaction waits for before it locks the import
   */
  private async steer(
    id: string,
    from: ImportState[],
    work: (tx: PoolClient, record: ImportRecord) => Promise<unknown>,
    before?: (tx: PoolClient) => Promise<void>,
  ): Promise<ImportResponse> {
    await this.database.transaction(async (tx) => {
      await before?.(tx);
      const record = this.known(await this.imports.lockWhere(tx, id));
      if (!from.includes(record.state)) {
        const detail = `The import is ${record.state}; this needs one that is ${from.join(' or ')}.`;
        throw new Problem(409, 'wrong-state', detail, { extensions: { state: record.state } });
      }
      const said = await work(tx, record);
      await this.audit.store(tx, typeof said === 'string' ? said : 'ok');
    }, 'bulk');
    this.notifier.notify(IMPORT_QUEUE, 'import-staged');
    this.notifier.notify(USER_MANAGEMENT_QUEUE, 'import-steered');
    return this.show(id);
  }

  /** @throws {Problem} 404 */
  private known(record: ImportRecord | undefined): ImportRecord {
    if (!record)
      throw new Problem(404, 'import-not-found', 'No import with this id is known; GET /v1/imports lists them.');
    this.audit.about('import', record.id);
    return record;
  }

  private async view(record: ImportRecord): Promise<ImportResponse> {
    this.audit.about('import', record.id);
    const totals = await this.outcomes.totals(record);
    const etaUnknown = await this.etaUnknown(record);
    const hasEta = (record.state === 'planned' || record.state === 'running') && etaUnknown === null;
    const pace = hasEta ? await this.calls.bulkPace(this.database.pool) : null;
    return showImport(record, totals, { pace, etaUnknown }, this.readableFiles(record));
  }

  /** @returns none where they do not open, which health reports */
  private readableFiles(record: ImportRecord): ImportFile[] {
    return ifReadable(() => this.imports.filesOf(record)) ?? [];
  }

  /** @returns null when the end is known, or there is none to expect */
  private async etaUnknown({ state }: ImportRecord): Promise<EtaUnknown | null> {
    if (state === 'paused') return 'paused';
    if (state !== 'running' && state !== 'planned') return null;
    if (!this.platform.isConfigured) return 'not-configured';
    const [stopped] = openBlocks(await this.breakers.read());
    return stopped?.code ?? null;
  }
}

/**
 * Lets guards pass that are overridden.
 *
 * @returns which were, for the audit trail
 * @throws {Problem} 409 `threshold-exceeded`
 */
function passGuards(guards: Guard[], overrides: string[]): string | undefined {
  const stopping = exceeded(guards, overrides);
  const names = (some: Guard[]) => some.map(({ name }) => name);
  if (stopping.length > 0) {
    const nameless = stopping.some((guard) => guard.nameless);
    const why = nameless ? ' Some rejected rows do not say whom they name, who may be among those to delete.' : '';
    const detail = `The plan exceeds the threshold for ${names(stopping).join(', ')}; look at the rows behind it, then say it again with override: ${JSON.stringify(names(stopping))}.${why}`;
    throw new Problem(409, 'threshold-exceeded', detail, { extensions: { guards: stopping } });
  }
  const used = names(exceeded(guards, []));
  return used.length === 0 ? undefined : `override ${used.join(',')}`;
}
