import { Injectable } from '@nestjs/common';
import type { PoolClient } from 'pg';
import { Audit } from '../../access/audit/audit.js';
import type { Principal } from '../../access/identity/scopes.js';
import { Database } from '../../database/database.js';
import { Problem } from '../../http/problem/problem.js';
import { PlatformPeople } from '../../people/reconcile/platform-people.js';
import { CircuitsRepository } from '../../people/store/circuits.repository.js';
import { RateLimiterRepository } from '../../platform/rate-limit/rate-limiter.repository.js';
import { IMPORT_QUEUE, USER_MANAGEMENT_QUEUE } from '../../queue/backend/queue-names.js';
import { QueueNotifier } from '../../queue/notifier/queue-notifier.js';
import { ImportFiles } from '../model/import-files.js';
import { exceeded, type Guard } from '../model/import-guards.js';
import { lockImports } from '../model/import-sql.js';
import type { ImportRecord, ImportState } from '../model/import-types.js';
import { ImportsRepository } from '../model/imports.repository.js';
import { OutcomesRepository } from '../run/outcomes.repository.js';
import { RetryRepository } from '../run/retry.repository.js';
import { type EtaUnknown, type ImportResponse, showImport } from './import-view.js';

/** What an operator's request changes of an import. */
type Steering = (tx: PoolClient, record: ImportRecord) => Promise<void>;

/** Imports: showing them, and steering them. */
@Injectable()
export class ImportsService {
  constructor(
    private readonly database: Database,
    private readonly imports: ImportsRepository,
    private readonly outcomes: OutcomesRepository,
    private readonly files: ImportFiles,
    private readonly retrying: RetryRepository,
    private readonly calls: RateLimiterRepository,
    private readonly platform: PlatformPeople,
    private readonly circuits: CircuitsRepository,
    private readonly notifier: QueueNotifier,
    private readonly audit: Audit,
  ) {}

  /** @throws {Problem} 404 */
  async show(id: string): Promise<ImportResponse> {
    return this.view(await this.find(id));
  }

  async list(limit: number, before?: { createdAt: string; id: string }): Promise<ImportResponse[]> {
    const records = await this.imports.list(limit, before);
    return Promise.all(records.map((record) => this.view(record)));
  }

  /**
   * Applies exactly the plan.
   *
   * @param overrides the guards that may be exceeded, by name
   * @param by for the audit trail
   * @throws {Problem} 404, 409 `wrong-state`, 409 `threshold-exceeded` with nothing sent
   */
  async apply(id: string, overrides: string[], by: Principal): Promise<ImportResponse> {
    return this.steer(id, ['planned'], async (tx, record) => {
      await this.passGuards(tx, id, record.guards ?? [], overrides, by);
      await this.imports.wantApply(tx, id, overrides);
    });
  }

  /**
   * Takes up again what failed, is in review, or was skipped because it was changed after the plan.
   *
   * @param overrides the guards that what is planned anew may exceed, by name
   * @throws {Problem} 404, 409 `wrong-state`, 409 `threshold-exceeded` with nothing taken up
   */
  async retry(id: string, overrides: string[], by: Principal): Promise<ImportResponse> {
    const work: Steering = async (tx, record) => {
      const guards = await this.retrying.retry(tx, record);
      if (!guards) return;
      await this.passGuards(tx, id, guards, overrides, by);
      await this.imports.enter(tx, id, 'running', true);
    };
    return this.steer(id, ['running', 'completed'], work, lockImports);
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
    return this.steer(id, ['paused'], async (tx, { applyWanted }) => {
      await this.imports.enter(tx, id, 'running', applyWanted);
    });
  }

  /** Calls under way finish, nothing else starts, and what was not sent is no longer wanted. */
  async cancel(id: string): Promise<ImportResponse> {
    return this.steer(id, ['staging', 'planned', 'running', 'paused'], async (tx, { appliedAt }) => {
      await this.imports.enter(tx, id, 'cancelled');
      if (appliedAt) await this.calls.awaitGrants(tx);
    });
  }

  /** Lets overridden guards pass, which the audit trail records. @throws {Problem} 409 `threshold-exceeded` */
  private async passGuards(
    tx: PoolClient,
    id: string,
    guards: Guard[],
    overrides: string[],
    by: Principal,
  ): Promise<void> {
    const [first, ...more] = exceeded(guards, overrides);
    if (first) {
      const names = [first, ...more].map((guard) => guard.name);
      const nameless = [first, ...more].some((guard) => guard.nameless);
      const why = nameless ? ' Some rejected rows do not say whom they name, who may be among those to delete.' : '';
      const detail = `The plan exceeds the threshold for ${names.join(', ')}; look at the rows behind it, then say it again with override: ${JSON.stringify(names)}.${why}`;
      throw new Problem(409, 'threshold-exceeded', detail, { extensions: { guards: [first, ...more] } });
    }
    const used = exceeded(guards, []).map((guard) => guard.name);
    if (used.length === 0) return;
    const subjects = { id, guards: used.join(',') };
    await this.audit.record({ by, action: 'import.override', subjects, outcome: 'accepted' }, tx);
  }

  /** @param before what the transaction waits for before it locks the import */
  private async steer(
    id: string,
    from: ImportState[],
    work: Steering,
    before?: (tx: PoolClient) => Promise<void>,
  ): Promise<ImportResponse> {
    await this.database.transaction(async (tx) => {
      await before?.(tx);
      await tx.query('SELECT 1 FROM imports WHERE id = $1 FOR NO KEY UPDATE', [id]);
      const record = await this.find(id, tx);
      if (!from.includes(record.state)) {
        const detail = `The import is ${record.state}; this needs one that is ${from.join(' or ')}.`;
        throw new Problem(409, 'wrong-state', detail, { extensions: { state: record.state } });
      }
      await work(tx, record);
    }, 'bulk');
    this.notifier.notify(IMPORT_QUEUE, 'import-staged');
    this.notifier.notify(USER_MANAGEMENT_QUEUE, 'import-steered');
    return this.show(id);
  }

  /** @throws {Problem} 404 */
  async find(id: string, sql?: Parameters<ImportsRepository['find']>[1]): Promise<ImportRecord> {
    const record = await this.imports.find(id, sql);
    if (!record)
      throw new Problem(404, 'import-not-found', 'No import with this id is known; GET /v1/imports lists them.');
    return record;
  }

  private async view(record: ImportRecord): Promise<ImportResponse> {
    const totals = await this.outcomes.totals(record);
    const etaUnknown = await this.etaUnknown(record);
    const hasEta = (record.state === 'planned' || record.state === 'running') && etaUnknown === null;
    const pace = hasEta ? await this.calls.bulkPace(this.database.pool) : null;
    return showImport(record, totals, { pace, etaUnknown }, this.files.ignoredColumns(record));
  }

  /** @returns null when the end is known, or there is none to expect */
  private async etaUnknown({ state }: ImportRecord): Promise<EtaUnknown | null> {
    if (state === 'paused') return 'paused';
    if (state !== 'running' && state !== 'planned') return null;
    if (!this.platform.isConfigured) return 'not-configured';
    const [stopped] = await this.circuits.stopped();
    return stopped?.code ?? null;
  }
}
