import { Injectable, Logger, type OnModuleInit } from '@nestjs/common';
import { DatabaseError, type PoolClient } from 'pg';
import { Clock } from '../../config/clock.js';
import { Database } from '../../database/database.js';
import { errorTrace } from '../../http/problem/error-trace.js';
import { type Health, HealthIndicator } from '../../http/server/health-indicator.js';
import { USER_MANAGEMENT_QUEUE } from '../../queue/backend/queue-names.js';
import { Poller } from '../../queue/notifier/poller.js';
import { QueueNotifier } from '../../queue/notifier/queue-notifier.js';
import type { ImportState } from '../model/import.js';
import { exceeded } from '../model/import-guards.js';
import { type ImportRecord, ImportsRepository } from '../model/imports.repository.js';
import { PlanRepository } from '../plan/plan.repository.js';
import { ReferencesRepository } from '../plan/references.repository.js';
import { INTERRUPTED } from '../upload/import-uploads.service.js';
import { StagingRepository } from '../upload/staging.repository.js';
import { APPLY_PHASES, ApplyRepository } from './apply.repository.js';
import { OutcomesRepository } from './outcomes.repository.js';
import { RollBackRepository } from './roll-back.repository.js';

/** Attempts to plan or apply an import without progress before it fails; about 40 minutes in all. */
export const MOST_ATTEMPTS = 8;
const FIRST_PAUSE_MS = 5_000;
const LONGEST_PAUSE_MS = 600_000;
const PAUSE_GROWTH = 4;

/** Rows that one transaction applies, pauses or releases: an interactive change of one of its people waits for it. */
const BATCH_ROWS = 1_000;

/** Counting a large import is followed by a rest of so many times what it took. */
const COUNT_REST = 10;

const UNPLANNED = {
  code: 'plan-failed',
  detail: 'The plan could not be made; nothing of it was imported: look into the log, and send it again.',
};

const UNAPPLIED = {
  code: 'apply-failed',
  detail: 'The plan could not be applied; what was not sent is taken back: look into the log, and send it again.',
};

/** SQLSTATE classes of faults that come again with the same data: data exceptions, constraints, limits of a program. */
function isOwnFault(error: unknown): boolean {
  return error instanceof DatabaseError && /^(22|23|42|54)/.test(error.code ?? '');
}

function isRolledBack(state: ImportState): boolean {
  return state === 'cancelled' || state === 'failed';
}

/** Of several calls at once one does the work. */
function oneAtATime(work: () => Promise<void>): () => Promise<void> {
  let working: Promise<void> | undefined;
  return () => {
    working ??= work().finally(() => {
      working = undefined;
    });
    return working;
  };
}

/**
 * The row numbers from 1 to the last in an order that knows nothing of the file's, in which the people of an import go.
 * Files are sorted, by date of admission, say: those who go first must not all be old or all be new, since the rest is
 * estimated by them. Multiples of the golden ratio's fraction fall evenly into a range, however few there are.
 */
export function* shuffledRows(last: number): Generator<number> {
  const divisor = (left: number, right: number): number => (right === 0 ? left : divisor(right, left % right));
  let step = Math.max(1, Math.round(last * 0.618_034));
  while (divisor(last, step) !== 1) step++; // without a common divisor each row comes once
  for (let count = 0, at = step; count < last; count++, at += step) yield (at % last) + 1;
}

/** The import ended, was paused or went on in another process meanwhile. */
class Overtaken extends Error {}

/**
 * Plans and applies imports one after the other, in the order in which they were read to their ends, has their people
 * follow a pause, cancel or resume, resolves the outcomes, and ends them. Any worker may take the next step of each.
 */
@Injectable()
export class ImportRunner implements OnModuleInit {
  private readonly log = new Logger(ImportRunner.name);
  private readonly countAgainAt = new Map<string, number>();

  constructor(
    private readonly database: Database,
    private readonly imports: ImportsRepository,
    private readonly plans: PlanRepository,
    private readonly applying: ApplyRepository,
    private readonly references: ReferencesRepository,
    private readonly outcomes: OutcomesRepository,
    private readonly rollingBack: RollBackRepository,
    private readonly staging: StagingRepository,
    private readonly notifier: QueueNotifier,
    private readonly poller: Poller,
    private readonly clock: Clock,
  ) {}

  onModuleInit(): void {
    const poll = (name: string, kind: Parameters<ImportsRepository['dueWhile']>[0], work: () => Promise<void>) =>
      this.poller.whenDue(name, () => this.imports.dueWhile(kind), work);
    poll('imports', 'due', () => this.prepareAll());
    poll('steered imports', 'steered', () => this.steerAll());
    poll('import outcomes', 'underWay', () => this.countAll());
    poll('broken uploads', 'stale', () => this.failStale());
  }

  /** An import that can't be planned or applied is attempted again; an operator may have to look at it. */
  @HealthIndicator('imports')
  async health(): Promise<Health> {
    const { length: putOff } = await this.imports.which('putOff');
    if (putOff === 0) return { status: 'ok' };
    const which = putOff === 1 ? '1 import could' : `${putOff} imports could`;
    const reason = `${which} not be planned or applied so far, and waits for another attempt: the log says why; cancel it, or mend that.`;
    return { status: 'degraded', reason, facts: { putOff } };
  }

  /** Plans and applies what is due. */
  readonly prepareAll = oneAtATime(() => this.prepareEach());

  /** Goes on with every import that was paused, cancelled or resumed. */
  readonly steerAll = oneAtATime(() => this.steerEach());

  /** Resolves the outcomes of every import that is under way, and ends those without pending rows. */
  async countAll(): Promise<void> {
    const faults: unknown[] = [];
    await this.steerAll().catch((error: unknown) => faults.push(error));
    for (const { id, state } of await this.imports.which('underWay')) {
      await this.countInTime(id, state).catch((error: unknown) => faults.push(error));
    }
    if (faults.length > 0) throw faults[0];
  }

  /** Fails imports whose upload was interrupted. */
  async failStale(): Promise<void> {
    for (const { id } of await this.imports.which('stale')) {
      await this.database.transaction((tx) => this.imports.fail(tx, id, 'reading', INTERRUPTED), 'bulk');
    }
  }

  private async prepareEach(): Promise<void> {
    while ((await this.imports.which('due')).length > 0) {
      // The attempt is counted before it begins, so that one that ends the process counts, too.
      const record = await this.database.transaction(
        async (tx) => ((await this.imports.tryLock(tx)) ? this.imports.beginNext(tx) : undefined),
        'bulk',
      );
      if (!record) return;
      try {
        const mayApply = record.state === 'running' || (await this.plan(record));
        if (mayApply) await this.apply(record.id);
        this.log.log({ msg: 'import prepared', import: record.id, applied: mayApply });
      } catch (error) {
        if (!(error instanceof Overtaken)) await this.putOff(record, error);
      }
    }
  }

  /** Plans what was read; neither a person nor the import is locked meanwhile. @returns whether it may be applied */
  private plan(record: ImportRecord): Promise<boolean> {
    return this.database.transaction(async (tx) => {
      if (!(await this.imports.tryLock(tx))) throw new Overtaken();
      await this.imports.analyse(tx);
      await this.plans.plan(tx, record);
      const guards = await this.plans.evaluateThresholds(tx, record.id);
      const mayApply = !record.dryRun && record.mode !== 'snapshot' && exceeded(guards, []).length === 0;
      if (!(await this.imports.planned(tx, record.id, guards, mayApply))) throw new Overtaken();
      return mayApply;
    }, 'bulk');
  }

  /** Applies a plan in batches that commit, each for itself; after a crash it begins anew and finds what is left. */
  private async apply(importId: string): Promise<void> {
    const left = await this.database.transaction((tx) => this.applying.left(tx, importId), 'bulk');
    for (const phase of APPLY_PHASES.filter((one) => left.phases.includes(one)))
      await this.inBatches(importId, left.lastRow, (tx, rowNos) => this.applying.apply(tx, importId, phase, rowNos));
    if (left.hasPeople)
      await this.inBatches(importId, left.lastRow, (tx, rowNos) => this.applying.release(tx, importId, rowNos));
    await this.database.transaction(async (tx) => {
      await this.references.storeProviderKeys(tx, importId);
      await this.imports.applied(tx, importId);
      if (left.hasPeople) await this.imports.analyse(tx);
    }, 'bulk');
    this.notifier.notify(USER_MANAGEMENT_QUEUE, 'import-applied');
  }

  private async inBatches(
    importId: string,
    lastRow: number,
    work: (tx: PoolClient, rowNos: number[]) => Promise<number>,
  ): Promise<void> {
    const rows = shuffledRows(lastRow);
    for (let done = 0; done < lastRow; done += BATCH_ROWS) {
      const batch = Array.from({ length: Math.min(BATCH_ROWS, lastRow - done) }, () => rows.next().value as number);
      await this.database.transaction(async (tx) => {
        await this.imports.lock(tx);
        if (!(await this.imports.lockApplying(tx, importId))) throw new Overtaken();
        if ((await work(tx, batch)) > 0) await this.imports.resetAttempts(tx, importId);
      }, 'bulk');
    }
  }

  /** A fault that comes again with the same data ends the import; others are attempted again later, and imports behind go on. */
  private async putOff({ id, state, attempts }: ImportRecord, error: unknown): Promise<void> {
    this.log.error({ msg: 'an import could not be prepared', import: id, attempt: attempts, ...errorTrace(error) });
    const pauseMs = Math.min(LONGEST_PAUSE_MS, FIRST_PAUSE_MS * PAUSE_GROWTH ** Math.max(0, attempts - 1));
    await this.database.transaction(async (tx) => {
      if (!isOwnFault(error) && attempts < MOST_ATTEMPTS) await this.imports.attemptAgain(tx, id, pauseMs);
      else if (await this.imports.fail(tx, id, 'apply', UNAPPLIED)) {
        this.log.warn({ msg: 'an import is taken back', import: id, state });
      } else if (await this.imports.fail(tx, id, 'plan', UNPLANNED)) await this.plans.discard(tx, id);
    }, 'bulk');
  }

  private async steerEach(): Promise<void> {
    for (let steered = await this.imports.which('steered'); steered.length > 0; ) {
      for (const { id } of steered) while (await this.steerSome(id));
      steered = await this.imports.which('steered');
    }
  }

  /** Pauses or releases the people of one batch. @returns whether there may be more */
  private async steerSome(id: string): Promise<boolean> {
    const { more, released } = await this.database.transaction(async (tx) => {
      const locked = await this.imports.lockSteered(tx, id);
      if (!locked) return { more: false, released: 0 };
      const { record, lastRow } = locked;
      const done = record.steeredTo ?? 0;
      const left = Math.max(0, lastRow - done);
      const rowNos = Array.from({ length: Math.min(BATCH_ROWS, left) }, (_, at) => done + 1 + at);
      const isRunning = record.state === 'running';
      const released = isRunning ? await this.applying.release(tx, id, rowNos) : 0;
      if (!isRunning) await this.applying.pause(tx, id, rowNos);
      await this.imports.followed(tx, id, left > BATCH_ROWS ? done + BATCH_ROWS : null);
      return { more: left > BATCH_ROWS, released };
    }, 'bulk');
    if (released > 0) this.notifier.notify(USER_MANAGEMENT_QUEUE, 'import-resumed');
    return more;
  }

  private async countInTime(id: string, state: ImportState): Promise<void> {
    const startedAt = this.clock.monotonicMs();
    if (startedAt < (this.countAgainAt.get(id) ?? 0)) return;
    const isLarge = await this.count(id, state);
    const now = this.clock.monotonicMs();
    if (isLarge) this.countAgainAt.set(id, now + (now - startedAt) * COUNT_REST);
    else this.countAgainAt.delete(id);
  }

  /** @returns whether as much is left to count as there was: of one that is rolled back a round leaves little */
  private async count(importId: string, seen: ImportState): Promise<boolean> {
    return this.database.transaction(
      async (tx) => {
        const record = await this.imports.lockUnderWay(tx, importId);
        if (!record || isRolledBack(record.state) !== isRolledBack(seen)) return false;
        if (record.applyWanted && record.state === 'running') return false; // its people are still paused
        const wasPending = await this.outcomes.resolveOutcomes(tx, record.id);
        const isToRollBack = isRolledBack(record.state) && wasPending > 0 && record.steeredTo === null;
        // An import that is applied at this moment may name a provider who would be rolled back.
        if (isToRollBack && (await this.imports.tryLock(tx))) await this.rollingBack.rollBack(tx, record.id);
        const pending = isToRollBack ? await this.outcomes.resolveOutcomes(tx, record.id) : wasPending;
        if (pending > 0 || record.applyWanted || record.steeredTo !== null) return pending === wasPending;
        await this.end(tx, record);
        return false;
      },
      isRolledBack(seen) ? 'bulk' : 'usual', // many people may have to be rolled back
    );
  }

  private async end(tx: PoolClient, { id, state: seen }: ImportRecord): Promise<void> {
    const state = seen === 'cancelled' || seen === 'failed' ? seen : 'completed';
    if (seen !== 'running') await this.rollingBack.release(tx, id);
    if (state !== 'completed') await this.references.discard(tx, id);
    await this.staging.discardRaw(tx, id, { mayBeRetried: state === 'completed' });
    await this.imports.end(tx, id, state);
    this.log.log({ msg: 'import finished', import: id, state });
  }
}
