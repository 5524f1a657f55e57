import { Injectable, Logger, type OnModuleInit } from '@nestjs/common';
import { Clock } from '../../config/clock.js';
import { Database } from '../../database/database.js';
import { isDatabaseUnavailable } from '../../errors/database-fault.js';
import { errorTrace } from '../../errors/error-trace.js';
import { Poller } from '../../queue/notifier/poller.js';
import { exceeded } from '../model/import-guards.js';
import { type ImportRecord, ImportsRepository } from '../model/imports.repository.js';
import { GuardsRepository } from '../plan/guards.repository.js';
import { PlanRepository } from '../plan/plan.repository.js';
import { StoredRecords } from '../upload/stored-records.repository.js';
import { LaterStatements } from './later-statements.js';
import { OutcomesRepository } from './outcomes.repository.js';
import { Overtaken, RowApplier } from './row-applier.js';
import { type Batch, RowsToApply } from './rows-to-apply.repository.js';

/** Plans that may crash their process before the import fails. */
const MAX_CRASHES = 3;

/** Rows that are skipped in one transaction. */
const SKIPPED_AT_ONCE = 10_000;

/** Counting a large import is followed by a pause of this many times its duration. */
const COUNT_PAUSE = 10;

const FAULTS = {
  plan: {
    code: 'plan-failed',
    detail: 'The plan could not be made. Nothing was imported: see the log, then upload the files again.',
  },
  crash: {
    code: 'plan-crashed',
    detail: `The process ended ${MAX_CRASHES} times while it planned this import. Nothing was imported: see the log, then upload smaller files.`,
  },
};

/** Runs `work` once at a time: a call while it runs waits for that run. */
function oneAtATime(work: () => Promise<void>): () => Promise<void> {
  let running: Promise<void> | undefined;
  return () => {
    running ??= work().finally(() => {
      running = undefined;
    });
    return running;
  };
}

/** Plans imports, applies their rows, counts the results, and finishes them. Any worker process may take the next step. */
@Injectable()
export class ImportRunner implements OnModuleInit {
  private readonly log = new Logger(ImportRunner.name);
  private readonly countAgainAt = new Map<string, number>();
  /** Imports whose plan ended because the database was unavailable. */
  private readonly interrupted = new Set<string>();

  constructor(
    private readonly database: Database,
    private readonly imports: ImportsRepository,
    private readonly plans: PlanRepository,
    private readonly guards: GuardsRepository,
    private readonly later: LaterStatements,
    private readonly rows: RowsToApply,
    private readonly applier: RowApplier,
    private readonly outcomes: OutcomesRepository,
    private readonly records: StoredRecords,
    private readonly poller: Poller,
    private readonly clock: Clock,
  ) {}

  onModuleInit(): void {
    this.poller.whenDue('imports', () => this.imports.nextDue(), this.run);
  }

  /** Does everything that can be done for imports now. */
  readonly run = oneAtATime(async () => {
    await this.database.transaction((tx) => this.imports.cancelExpired(tx));
    await this.planAll();
    await this.applyRows();
    for (const id of await this.imports.atWork('running', 'paused', 'cancelled', 'failed')) await this.countInTime(id);
  });

  private async planAll(): Promise<void> {
    for (const id of this.interrupted) await this.imports.forgetAttempt(id);
    this.interrupted.clear();
    for (;;) {
      const record = await this.database.transaction((tx) => this.imports.beginPlan(tx));
      if (!record) return;
      if (record.attempts > MAX_CRASHES) await this.fail(record.id, 'crash');
      else await this.plan(record);
    }
  }

  private async plan(record: ImportRecord): Promise<void> {
    const { id, dryRun, mode } = record;
    try {
      const state = await this.database.transaction(async (tx) => {
        const files = this.imports.filesOf(record);
        // Imports are planned one at a time, because each plan depends on those before it.
        if (!(await this.imports.lock(tx, id, `state = 'staging'`))) return undefined;
        const rows = files.reduce((sum, file) => sum + file.rows, 0);
        await this.plans.plan(tx, record, rows);
        const guards = await this.guards.evaluate(tx, record, files);
        const isApplied = !dryRun && mode !== 'snapshot' && exceeded(guards, []).length === 0;
        await this.imports.planned(tx, id, guards, isApplied);
        if (isApplied) await this.later.reopen(tx, id);
        return isApplied ? 'running' : 'planned';
      }, 'bulk');
      if (state) this.log.log({ msg: 'import planned', import: id, state });
    } catch (error) {
      if (isDatabaseUnavailable(error)) {
        this.interrupted.add(id); // forgets the attempt once the database is available
        throw error; // the poller runs this again
      }
      this.log.error({ msg: 'an import could not be planned', import: id, ...errorTrace(error) });
      await this.fail(id, 'plan');
    }
  }

  /** Makes everyone desired whom the running imports name. */
  private async applyRows(): Promise<void> {
    for (;;) {
      const batches = await this.rows.next();
      if (batches.length === 0) return;
      for (const batch of batches) await this.applyBatch(batch);
    }
  }

  /** Applies a batch; after a fault, its rows one by one, so that the one at fault fails alone. */
  private async applyBatch({ importId, rowNos }: Batch): Promise<void> {
    try {
      await this.applier.apply({ importId, rowNos });
    } catch (error) {
      if (isDatabaseUnavailable(error)) throw error;
      if (error instanceof Overtaken) return; // the rows are found again
      if (rowNos.length > 1) {
        for (const rowNo of rowNos) await this.applyBatch({ importId, rowNos: [rowNo] });
        return;
      }
      const row = rowNos[0] as number;
      this.log.error({ msg: 'a row of an import could not be applied', import: importId, row, ...errorTrace(error) });
      await this.rows.fail(importId, row);
    }
  }

  private async fail(id: string, fault: keyof typeof FAULTS): Promise<void> {
    await this.database.transaction((tx) => this.imports.fail(tx, id, ['staging'], FAULTS[fault]));
  }

  private async countInTime(id: string): Promise<void> {
    const beganAt = this.clock.monotonicMs();
    if (beganAt < (this.countAgainAt.get(id) ?? 0)) return;
    const isOver = await this.count(id);
    const now = this.clock.monotonicMs();
    if (isOver) this.countAgainAt.delete(id);
    else this.countAgainAt.set(id, now + (now - beganAt) * COUNT_PAUSE);
  }

  /** Resolves outcomes, and finishes the import if no row is left. @returns true if it has finished */
  private async count(id: string): Promise<boolean> {
    return this.database.transaction(async (tx) => {
      const record = await this.imports.lockAtWork(tx, id);
      if (!record) return true;
      const isEnding = record.state === 'cancelled' || record.state === 'failed';
      if (isEnding && (await this.outcomes.skipUnapplied(tx, id, SKIPPED_AT_ONCE))) return false;
      if (isEnding) await this.records.delete(tx, id);
      if ((await this.outcomes.resolve(tx, id)) > 0) return false;
      await this.outcomes.forgetUnchanged(tx, id);
      await this.imports.finish(tx, record, await this.outcomes.totals({ ...record, finishedAt: null }, tx));
      this.log.log({ msg: 'import finished', import: id, state: record.state });
      return true;
    }, 'bulk');
  }
}
