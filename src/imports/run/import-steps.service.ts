import { Injectable, Logger } from '@nestjs/common';
import { Clock } from '../../config/clock.js';
import { Database } from '../../database/database.js';
import { isDatabaseUnavailable } from '../../errors/database-fault.js';
import { errorTrace } from '../../errors/error-trace.js';
import { ROUND_MS } from '../../queue/work/feeder.js';
import type { ImportState } from '../model/import.js';
import { type ImportRecord, ImportsRepository } from '../model/imports.repository.js';
import { StoredRecords } from '../upload/stored-records.repository.js';
import { ImportCounts } from './import-counts.repository.js';
import { OutcomesRepository } from './outcomes.repository.js';
import { Planner } from './planner.service.js';
import { Overtaken, RowApplier } from './row-applier.js';
import { RowsToApply } from './rows-to-apply.repository.js';
import { WithdrawalRepository } from './withdrawal.repository.js';

/** Batches that one job applies, so that imports take turns. */
const BATCHES = 10;

/** Rows that are skipped in one transaction. */
const SKIPPED_AT_ONCE = 10_000;

/** Looking at the people of a large import is followed by a pause of this many times its duration. */
const LOOK_PAUSE = 10;
/** The same while the import is paused, because only few people change then. */
const PAUSED_LOOK_PAUSE = 100;

/**
 * The next step of an import by its state. Each step is idempotent, because a job may run twice.
 *
 * | state | step |
 * |---|---|
 * | `needs-mapping` | is cancelled once no one has chosen the columns in time |
 * | `staging` | the plan, one import after the other |
 * | `running` | ten batches of rows are applied; outcomes are stored |
 * | `paused` | outcomes are stored |
 * | `cancelled`, `failed` | rows that were not applied are skipped, what may be withdrawn is withdrawn, outcomes are stored |
 *
 * An import ends once no row is pending.
 */
@Injectable()
export class ImportSteps {
  private readonly log = new Logger(ImportSteps.name);
  /** The state of each large import at its last look, and the time of the next one in that state. */
  private readonly lastLooks = new Map<string, { state: ImportState; againAtMs: number }>();

  constructor(
    private readonly database: Database,
    private readonly imports: ImportsRepository,
    private readonly planner: Planner,
    private readonly rows: RowsToApply,
    private readonly applier: RowApplier,
    private readonly withdrawal: WithdrawalRepository,
    private readonly outcomes: OutcomesRepository,
    private readonly counts: ImportCounts,
    private readonly records: StoredRecords,
    private readonly clock: Clock,
  ) {}

  /** Does the next step of an import. @returns true if another one follows at once */
  async next(id: string): Promise<boolean> {
    const record = await this.imports.find(id);
    if (!record || record.finishedAt !== null) return false;
    const hasMore = await this.step(record);
    if (record.failures > 0 && record.state !== 'staging') await this.imports.succeeded(id);
    return hasMore;
  }

  private async step(record: ImportRecord): Promise<boolean> {
    const { id, state } = record;
    switch (state) {
      case 'needs-mapping':
        await this.imports.expire(id);
        return false;
      case 'staging':
        return this.planner.plan(record);
      case 'running': {
        const hasMore = await this.applyRows(id);
        await this.lookInTime(record, LOOK_PAUSE);
        return hasMore;
      }
      case 'cancelled':
      case 'failed':
        if (await this.takeBack(id)) return true;
        await this.lookInTime(record, LOOK_PAUSE);
        return false;
      case 'paused':
        await this.lookInTime(record, PAUSED_LOOK_PAUSE);
        return false;
      default:
        return false;
    }
  }

  /** Makes the people of the next rows desired. @returns true if there are more */
  private async applyRows(id: string): Promise<boolean> {
    for (let batch = 0; batch < BATCHES; batch += 1) {
      const rowNos = await this.rows.next(id);
      if (rowNos.length === 0) return false;
      await this.applyBatch(id, rowNos);
    }
    return true;
  }

  /** Applies a batch; after a fault, its rows one by one, so that the one at fault fails alone. */
  private async applyBatch(importId: string, rowNos: readonly number[]): Promise<void> {
    try {
      await this.applier.apply({ importId, rowNos });
    } catch (error) {
      if (isDatabaseUnavailable(error)) throw error;
      if (error instanceof Overtaken) return; // the rows are found again
      if (rowNos.length > 1) {
        for (const rowNo of rowNos) await this.applyBatch(importId, [rowNo]);
        return;
      }
      const row = rowNos[0] as number;
      this.log.error({ msg: 'a row of an import could not be applied', import: importId, row, ...errorTrace(error) });
      await this.rows.fail(importId, row);
    }
  }

  /** Takes back some of what a cancelled import has not carried out. @returns true if there may be more */
  private takeBack(id: string): Promise<boolean> {
    return this.database.transaction(async (tx) => {
      const record = await this.imports.lock(tx, id, `state IN ('cancelled', 'failed') AND finished_at IS NULL`);
      if (!record) return false;
      if (await this.outcomes.skipUnapplied(tx, id, SKIPPED_AT_ONCE)) return true;
      if (!record.withdraws) return false;
      if (await this.withdrawal.withdrawNext(tx, id)) return true;
      await this.withdrawal.skipWithdrawn(tx, id);
      await this.imports.withdrawn(tx, id);
      return false;
    }, 'bulk');
  }

  private async lookInTime({ id, state }: ImportRecord, pause: number): Promise<void> {
    const beganAtMs = this.clock.monotonicMs();
    const last = this.lastLooks.get(id);
    if (last?.state === state && beganAtMs < last.againAtMs) return;
    const isOver = await this.look(id);
    const nowMs = this.clock.monotonicMs();
    const pauseMs = (nowMs - beganAtMs) * pause;
    if (isOver || pauseMs < ROUND_MS) this.lastLooks.delete(id);
    else this.lastLooks.set(id, { state, againAtMs: nowMs + pauseMs });
  }

  /** Stores outcomes, and ends the import if no row is pending. @returns true if it has ended */
  private look(id: string): Promise<boolean> {
    return this.database.transaction(async (tx) => {
      const record = await this.imports.lockAtWork(tx, id);
      if (!record) return true;
      if (record.withdraws) return false; // it was cancelled meanwhile
      if (await this.outcomes.resolve(tx, id)) return false;
      await this.outcomes.forgetUnchanged(tx, id);
      if (record.state === 'cancelled') await this.records.delete(tx, id);
      const state = await this.imports.finish(
        tx,
        record,
        await this.counts.totals({ ...record, finishedAt: null }, tx),
      );
      this.log.log({ msg: 'import finished', import: id, state });
      return true;
    }, 'bulk');
  }
}
