import { Injectable } from '@nestjs/common';
import { Clock } from '../config/clock.js';
import { Env, type Role } from '../config/env.js';
import { withTimeout } from '../config/with-timeout.js';
import { discardConnections } from '../database/connect/pools.js';
import { Database } from '../database/database.js';
import { mayChangeAuditLog } from '../database/runtime-role.js';
import { isDatabaseUnavailable } from '../errors/database-fault.js';
import { type Health, HealthIndicator, healthOf } from '../monitoring/health-indicator.js';
import { Metrics } from '../monitoring/metrics.js';
import { GONE_SECONDS, WorkerProcess } from '../processes/worker-process.js';

const HELP = `Seconds since the last heartbeat of a process with the role. Above ${GONE_SECONDS}, or without a series, none is alive`;

/** Timeout for an answer of PostgreSQL, shorter than that of a check, so that its silence has a name. */
const ANSWER_MS = 1_500;

const UNAVAILABLE: Health = { status: 'down', reasons: [{ code: 'database-unavailable' }] };

/** The health of the database and of the roles. */
@Injectable()
export class PartHealth {
  constructor(
    private readonly env: Env,
    private readonly database: Database,
    private readonly processes: WorkerProcess,
    private readonly clock: Clock,
    metrics: Metrics,
  ) {
    // A gauge without a label would be 0 when there is no value.
    metrics.gauge('heartbeat_age_seconds', HELP, ['role'], async (gauge) => {
      gauge.reset();
      for (const role of ['api', 'worker'] as const) {
        const seconds = await this.processes.secondsSince(role);
        if (seconds !== null) gauge.set({ role }, seconds);
      }
    });
  }

  @HealthIndicator({ name: 'api', needs: ['database'] })
  api(): Promise<Health> {
    return this.roleHealth('api', 'no-api');
  }

  @HealthIndicator({ name: 'worker', needs: ['database'] })
  worker(): Promise<Health> {
    return this.roleHealth('worker', 'no-worker');
  }

  /** Not vital: while every connection of the API waits, the inbox, which has its own, may still commit. */
  @HealthIndicator({ name: 'database' })
  async databaseHealth(): Promise<Health> {
    try {
      return await withTimeout(this.readDatabase(), ANSWER_MS, () => UNAVAILABLE, this.clock);
    } catch (error) {
      if (!isDatabaseUnavailable(error)) throw error;
      return UNAVAILABLE;
    }
  }

  private async readDatabase(): Promise<Health> {
    const { rows } = await this.database.pool.query<{ readOnly: boolean }>(
      `SELECT current_setting('transaction_read_only')::boolean AS "readOnly"`,
    );
    if (rows[0]?.readOnly) {
      discardConnections(this.database.pool);
      return { status: 'down', reasons: [{ code: 'database-read-only' }] };
    }
    return { status: 'ok', facts: { auditLogProtected: !(await mayChangeAuditLog(this.database.pool)) } };
  }

  /** Reports whether any process with a role is alive, without a query if this one has it. */
  private async roleHealth(role: Role, code: 'no-api' | 'no-worker'): Promise<Health> {
    if (this.env.hasRole(role)) return { status: 'ok' };
    const seconds = await this.processes.secondsSince(role);
    if (seconds !== null && seconds < GONE_SECONDS) return { status: 'ok' };
    const since = seconds === null ? undefined : new Date(this.clock.now().getTime() - seconds * 1_000);
    return healthOf([{ code, ...(since && { since }) }]);
  }
}
