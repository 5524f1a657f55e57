import { Injectable, Logger, type OnModuleInit } from '@nestjs/common';
import { DatabaseError, type PoolClient } from 'pg';
import { Clock } from '../config/clock.js';
import { Database } from '../database/database.js';
import { Doorbell } from '../queue/doorbell.js';
import { IMPORT_QUEUE, USER_MANAGEMENT_QUEUE } from '../queue/queue-names.js';
import { Sweep } from '../queue/sweep.js';
import { ApplyRepository } from './apply.repository.js';
import { CancelRepository } from './cancel.repository.js';
import { GuardsRepository } from './guards.repository.js';
import { COUNT_EVERY_MS } from './import-eta.js';
import { standing } from './import-guards.js';
import type { ImportRecord, ImportState } from './import-types.js';
import { ImportsRepository } from './imports.repository.js';
import { isFirst } from './order-lock.js';
import { PlanRepository } from './plan.repository.js';
import { RowCellsRepository } from './row-cells.repository.js';
import { TallyRepository } from './tally.repository.js';

/** Milliseconds without a sign of life after which an upload counts as broken off. */
const SILENT_MS = 60_000;

/** Milliseconds between two looks for those. */
const LISTEN_MS = 5_000;

/** A count is followed by a rest of so many times what it took. */
const COUNT_REST = 10;

/** Why an import failed whose upload did not come to its end. */
export const INTERRUPTED = {
  code: 'interrupted',
  detail: 'The upload broke off before its end; nothing of it was imported: send it again.',
};

const UNPLANNED = {
  code: 'plan-failed',
  detail: 'The plan could not be made; nothing of it was imported: look into the log, and send it again.',
};

/** SQLSTATE classes of faults that come again with the same data: data exceptions, constraints, limits of a program. */
function isOwnFault(error: unknown): boolean {
  return error instanceof DatabaseError && /^(22|23|42|54)/.test(error.code ?? '');
}

/** The steps of an import once it was read: plan, apply, count outcomes, finish. Any worker may take the next step. */
@Injectable()
export class ImportSteps implements OnModuleInit {
  private readonly log = new Logger(ImportSteps.name);
  private readonly countAgainAt = new Map<string, number>();

  constructor(
    private readonly database: Database,
    private readonly imports: ImportsRepository,
    private readonly plans: PlanRepository,
    private readonly guards: GuardsRepository,
    private readonly applying: ApplyRepository,
    private readonly tallies: TallyRepository,
    private readonly cancelling: CancelRepository,
    private readonly cells: RowCellsRepository,
    private readonly doorbell: Doorbell,
    private readonly sweep: Sweep,
    private readonly clock: Clock,
  ) {}

  onModuleInit(): void {
    this.sweep.every(COUNT_EVERY_MS, 'imports', async () => {
      await this.prepareAll();
      await this.countAll();
    });
    this.sweep.every(LISTEN_MS, 'broken uploads', () => this.giveUpSilent());
  }

  /** Gives up imports whose reader died with its process. */
  private async giveUpSilent(): Promise<void> {
    for (const id of await this.imports.silent(SILENT_MS)) {
      await this.database.transaction((tx) => this.imports.failReading(tx, id, INTERRUPTED), 'bulk');
    }
  }

  /** Plans and applies whatever waits for it, in order. */
  async prepareAll(): Promise<void> {
    while ((await this.imports.hasToPrepare()) && (await this.prepareNext()))
      this.doorbell.ring(USER_MANAGEMENT_QUEUE, 'import-applied');
  }

  /** An import whose rows the database refuses would do so again: it fails by itself, and those behind it go on. */
  private async prepareNext(): Promise<boolean> {
    const begun: { id?: string } = {};
    try {
      return await this.prepareIn(begun);
    } catch (error) {
      if (begun.id === undefined || !isOwnFault(error)) throw error;
      this.log.error({ msg: 'an import could not be planned', import: begun.id, code: (error as DatabaseError).code });
      const id = begun.id;
      await this.database.transaction(async (tx) => {
        if (await this.imports.failPlan(tx, id, UNPLANNED)) await this.plans.giveUp(tx, id);
      }, 'bulk');
      return true;
    }
  }

  private prepareIn(begun: { id?: string }): Promise<boolean> {
    return this.database.transaction(async (tx) => {
      if (!(await isFirst(tx))) return false;
      const record = await this.imports.nextToPrepare(tx);
      if (!record) return false;
      begun.id = record.id;
      await this.imports.analyse(tx);
      const applied = await this.prepare(tx, record);
      await this.imports.enter(tx, record.id, applied ? 'running' : 'planned');
      this.log.log({ msg: 'import prepared', import: record.id, applied });
      return true;
    }, 'bulk');
  }

  /** Plans what was read, and applies what may be. @returns whether it was applied */
  private async prepare(tx: PoolClient, record: ImportRecord): Promise<boolean> {
    if (record.state === 'staging') {
      await this.plans.plan(tx, record);
      const guards = await this.guards.weigh(tx, record.id);
      if (record.dryRun || record.mode === 'snapshot' || standing(guards, []).length > 0) return false;
    }
    await this.applying.apply(tx, record.id);
    return true;
  }

  /** Counts the outcomes of every import that is under way, and finishes those without pending rows. */
  async countAll(): Promise<void> {
    for (const { id, state } of await this.imports.underWay()) {
      const startedAt = this.clock.monotonicMs();
      if (startedAt < (this.countAgainAt.get(id) ?? 0)) continue;
      const isLarge = await this.count(id, state);
      const now = this.clock.monotonicMs();
      // Counting a large import takes its time: never more than a small share of it.
      if (isLarge) this.countAgainAt.set(id, now + (now - startedAt) * COUNT_REST);
      else this.countAgainAt.delete(id);
    }
  }

  /** @returns whether as much is left to count as there was: of a cancelled import a round leaves little */
  private async count(importId: string, seen: ImportState): Promise<boolean> {
    const wasCancelled = seen === 'cancelled'; // whoever is to be taken back may be many
    return this.database.transaction(
      async (tx) => {
        const record = await this.imports.lockUnderWay(tx, importId);
        if (!record || (record.state === 'cancelled') !== wasCancelled) return false;
        const wasPending = await this.tallies.tally(tx, record.id);
        const isCancelled = record.state === 'cancelled' && wasPending > 0;
        // One that is applied at this moment may name a provider who would be taken back.
        if (isCancelled && (await isFirst(tx))) await this.cancelling.takeBack(tx, record.id);
        const pending = isCancelled ? await this.tallies.tally(tx, record.id) : wasPending;
        if (pending > 0) return pending === wasPending;
        const state = record.state === 'cancelled' ? 'cancelled' : 'completed';
        if (state === 'cancelled') await this.cancelling.release(tx, record.id);
        await this.cells.forget(tx, record.id, { mayBeRetried: state === 'completed' });
        await this.imports.end(tx, record.id, state);
        this.log.log({ msg: 'import finished', import: record.id, state });
        return false;
      },
      wasCancelled ? 'bulk' : 'usual',
    );
  }

  /** Rings for the imports' own queue. */
  ring(): void {
    this.doorbell.ring(IMPORT_QUEUE, 'import-staged');
  }
}
