import { Injectable } from '@nestjs/common';
import { Env } from '../config/env.js';
import { Database } from '../database/database.js';
import { writeFault } from '../database/pools.js';
import { mayChangeAuditLog } from '../database/runtime-role.js';
import { isDatabaseUnavailable, noRoom } from '../http/problem/fault.js';
import { type Health, HealthIndicator } from '../http/server/health-indicator.js';
import { Metrics } from '../http/server/metrics.js';
import { WorkerProcess } from '../queue/due-rows/worker-process.js';

/** Seconds without a beat after which no worker counts as alive; longer than a restart takes. */
const SILENT_SECONDS = 30;

const HELP = `Seconds since any process of the role was last alive; beyond ${SILENT_SECONDS} none is, and what is asked for waits: alert on that and on its absence`;
const NO_WORKER = `No worker was alive within ${SILENT_SECONDS} seconds: what is asked for is kept and waits; start a process with the role worker.`;
const READ_ONLY =
  'PostgreSQL takes no writes: default_transaction_read_only is on for the role or database of DATABASE_URL.';
const AWAY = 'PostgreSQL can not be reached, or gives no free connection; check DATABASE_URL and what keeps it busy.';

/** The health of the parts that no other module reports. */
@Injectable()
export class PartHealth {
  constructor(
    private readonly env: Env,
    private readonly database: Database,
    private readonly workers: WorkerProcess,
    metrics: Metrics,
  ) {
    // A gauge without a label would be 0 when there is no value.
    metrics.gauge('heartbeat_age_seconds', HELP, ['role'], async (gauge) => {
      const age = await this.workers.secondsSinceAny();
      gauge.reset();
      if (age !== null) gauge.set({ role: 'worker' }, age);
    });
  }

  /** Whether any worker is alive, as a process without that role reports it. */
  @HealthIndicator('worker')
  async worker(): Promise<Health> {
    if (this.env.hasRole('worker')) return { status: 'ok' };
    const age = await this.workers.secondsSinceAny();
    return age !== null && age < SILENT_SECONDS ? { status: 'ok' } : { status: 'degraded', reason: NO_WORKER };
  }

  /** Not vital: while every connection of the API waits, the inbox, which has its own, may still commit. */
  @HealthIndicator('database')
  async writes(): Promise<Health> {
    try {
      const { rows } = await this.database.pool.query<{ readOnly: boolean }>(
        `SELECT current_setting('transaction_read_only')::boolean AS "readOnly"`,
      );
      if (rows[0]?.readOnly) return { status: 'down', reason: READ_ONLY };
      const code = (await writeFault(this.database.pool)) ?? (await writeFault(this.database.bulkPool));
      if (code !== undefined) return { status: 'down', reason: noRoom(code) };
      return { status: 'ok', facts: { auditLogProtected: !(await mayChangeAuditLog(this.database.pool)) } };
    } catch (error) {
      if (!isDatabaseUnavailable(error)) throw error;
      return { status: 'down', reason: AWAY };
    }
  }
}
