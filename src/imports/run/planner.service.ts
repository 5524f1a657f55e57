import { Injectable, Logger } from '@nestjs/common';
import { Database } from '../../database/database.js';
import { isDatabaseUnavailable } from '../../errors/database-fault.js';
import { errorTrace } from '../../errors/error-trace.js';
import { exceeded } from '../model/import-guards.js';
import { type ImportRecord, ImportsRepository } from '../model/imports.repository.js';
import { GuardsRepository } from '../plan/guards.repository.js';
import { PlanRepository } from '../plan/plan.repository.js';
import { LaterStatements } from './later-statements.js';

/** Plans that may crash their process before the import fails. */
const MAX_CRASHES = 3;

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

/** Makes the plan of an import, and begins to apply it if nothing has to be confirmed. */
@Injectable()
export class Planner {
  private readonly log = new Logger(Planner.name);
  /** Imports whose plan ended because the database was unavailable, which is no fault of theirs. */
  private readonly interrupted = new Set<string>();

  constructor(
    private readonly database: Database,
    private readonly imports: ImportsRepository,
    private readonly plans: PlanRepository,
    private readonly guards: GuardsRepository,
    private readonly later: LaterStatements,
  ) {}

  /** @returns true if another step of any import follows at once */
  async plan(record: ImportRecord): Promise<boolean> {
    const { id } = record;
    const failures = await this.imports.beginPlan(id, !this.interrupted.has(id));
    if (failures === undefined) return false;
    this.interrupted.delete(id);
    if (failures > MAX_CRASHES) return this.fail(id, 'crash');
    try {
      const state = await this.database.transaction((tx) => this.planIn(tx, record), 'bulk');
      if (state) this.log.log({ msg: 'import planned', import: id, state });
      return true;
    } catch (error) {
      if (isDatabaseUnavailable(error)) {
        this.interrupted.add(id);
        throw error;
      }
      this.log.error({ msg: 'an import could not be planned', import: id, ...errorTrace(error) });
      return this.fail(id, 'plan');
    }
  }

  private async planIn(tx: Parameters<PlanRepository['plan']>[0], record: ImportRecord) {
    const { id, dryRun, mode } = record;
    if (!(await this.imports.lock(tx, id, `state = 'staging'`))) return undefined;
    const files = this.imports.filesOf(record);
    const rows = files.reduce((sum, file) => sum + file.rows, 0);
    await this.plans.plan(tx, record, rows);
    const guards = await this.guards.evaluate(tx, record, files);
    const isApplied = !dryRun && mode !== 'snapshot' && exceeded(guards, []).length === 0;
    await this.imports.planned(tx, id, guards, isApplied);
    if (isApplied) await this.later.begin(tx, id);
    return isApplied ? 'running' : 'planned';
  }

  private async fail(id: string, fault: keyof typeof FAULTS): Promise<boolean> {
    await this.database.transaction((tx) => this.imports.fail(tx, id, ['staging'], FAULTS[fault]));
    return true;
  }
}
