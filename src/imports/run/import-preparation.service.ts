import { Injectable, Logger } from '@nestjs/common';
import { DatabaseError, type PoolClient } from 'pg';
import { Database } from '../../database/database.js';
import { errorTrace } from '../../http/problem/error-trace.js';
import { USER_MANAGEMENT_QUEUE } from '../../queue/backend/queue-names.js';
import { QueueNotifier } from '../../queue/notifier/queue-notifier.js';
import { BATCH_ROWS } from '../model/batch-rows.js';
import { MOST_ATTEMPTS, nextAttemptInMs } from '../model/import-attempts.js';
import { standing } from '../model/import-guards.js';
import { isFirst, lockImport } from '../model/import-lock.js';
import type { ImportRecord } from '../model/import-types.js';
import { ImportsRepository } from '../model/imports.repository.js';
import { GuardsRepository } from '../plan/guards.repository.js';
import { PlanRepository } from '../plan/plan.repository.js';
import { ReferencesRepository } from '../plan/references.repository.js';
import { shuffledRows } from '../plan/shuffled-order.js';
import { APPLY_PHASES, ApplyRepository } from './apply.repository.js';
import { PreparationRepository } from './preparation.repository.js';

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

/** The import ended, paused or went on elsewhere while somebody was at it. */
class Overtaken extends Error {}

/** Plans and applies imports, one after the other, in the order in which they were read to their ends. */
@Injectable()
export class ImportPreparation {
  private readonly log = new Logger(ImportPreparation.name);
  private running: Promise<void> | undefined;

  constructor(
    private readonly database: Database,
    private readonly imports: ImportsRepository,
    private readonly preparing: PreparationRepository,
    private readonly plans: PlanRepository,
    private readonly guards: GuardsRepository,
    private readonly applying: ApplyRepository,
    private readonly references: ReferencesRepository,
    private readonly notifier: QueueNotifier,
  ) {}

  /** Plans and applies whatever waits for it; of several calls at once one does the work. */
  prepareAll(): Promise<void> {
    this.running ??= this.prepareEach().finally(() => {
      this.running = undefined;
    });
    return this.running;
  }

  private async prepareEach(): Promise<void> {
    while (await this.preparing.isAnyDue()) {
      const record = await this.begin();
      if (!record) return;
      try {
        await this.prepare(record);
      } catch (error) {
        if (!(error instanceof Overtaken)) await this.putOff(record, error);
      }
    }
  }

  /** The attempt is counted before it begins, so that one that ends the process counts, too. */
  private begin(): Promise<ImportRecord | undefined> {
    return this.database.transaction(
      async (tx) => ((await isFirst(tx)) ? this.preparing.beginNext(tx) : undefined),
      'bulk',
    );
  }

  private async prepare(record: ImportRecord): Promise<void> {
    const mayApply = record.state === 'running' || (await this.plan(record));
    if (mayApply) await this.apply(record.id);
    this.log.log({ msg: 'import prepared', import: record.id, applied: mayApply });
  }

  /** Plans what was read; nobody's person is locked meanwhile, nor the import. @returns whether it may be applied */
  private plan(record: ImportRecord): Promise<boolean> {
    return this.database.transaction(async (tx) => {
      if (!(await isFirst(tx))) throw new Overtaken();
      await this.imports.analyse(tx);
      await this.plans.plan(tx, record);
      const guards = await this.guards.evaluateThresholds(tx, record.id);
      const mayApply = !record.dryRun && record.mode !== 'snapshot' && standing(guards, []).length === 0;
      if (!(await this.preparing.planned(tx, record.id, mayApply))) throw new Overtaken();
      return mayApply;
    }, 'bulk');
  }

  /**
   * Applies a plan in batches that commit, each for itself; whoever comes after a process that died begins anew and finds
   * what is left. People go once everybody is wanted.
   */
  private async apply(importId: string): Promise<void> {
    const { phases, holdsPeople, lastRow } = await this.database.transaction(
      (tx) => this.applying.left(tx, importId),
      'bulk',
    );
    for (const phase of APPLY_PHASES.filter((one) => phases.includes(one)))
      await this.inBatches(importId, lastRow, (tx, rowNos) => this.applying.apply(tx, importId, phase, rowNos));
    if (holdsPeople)
      await this.inBatches(importId, lastRow, (tx, rowNos) => this.applying.release(tx, importId, rowNos));
    await this.database.transaction(async (tx) => {
      await this.references.remember(tx, importId);
      await this.preparing.applied(tx, importId);
      if (holdsPeople) await this.imports.analyse(tx);
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
        await lockImport(tx);
        if (!(await this.preparing.lockApplying(tx, importId))) throw new Overtaken();
        if ((await work(tx, batch)) > 0) await this.preparing.gotOn(tx, importId);
      }, 'bulk');
    }
  }

  /** What comes again with the same data ends the import; anything else is attempted again later, and others go on. */
  private async putOff({ id, state, attempts }: ImportRecord, error: unknown): Promise<void> {
    this.log.error({ msg: 'an import could not be prepared', import: id, attempt: attempts, ...errorTrace(error) });
    await this.database.transaction(async (tx) => {
      if (!isOwnFault(error) && attempts < MOST_ATTEMPTS) {
        await this.preparing.attemptAgain(tx, id, nextAttemptInMs(attempts));
      } else if (await this.imports.failApply(tx, id, UNAPPLIED)) {
        this.log.warn({ msg: 'an import is taken back', import: id, state });
      } else if (await this.imports.failPlan(tx, id, UNPLANNED)) await this.plans.giveUp(tx, id);
    }, 'bulk');
  }
}
