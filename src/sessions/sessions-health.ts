import { Injectable } from '@nestjs/common';
import { Database } from '../database/database.js';
import { type Health, HealthIndicator, healthOf } from '../http/server/health-indicator.js';
import { Contract } from '../platform/contract/contract.js';
import { requestsHealth } from '../platform/send/requests-health.js';
import { EVENT_LANE, LONGEST_AWAITED } from './refresh/refresh-scheduler.repository.js';

/** Reports sessions that cannot be fetched, and requests that wait or need a decision. */
@Injectable()
export class SessionsHealth {
  constructor(
    private readonly database: Database,
    private readonly contract: Contract,
  ) {}

  @HealthIndicator('sessions')
  async health(): Promise<Health> {
    const { rows } = await this.database.pool.query<{ refused: boolean; overdue: boolean; fault: string | null }>(
      `SELECT EXISTS (SELECT 1 FROM sessions WHERE due_at IS NOT NULL AND fault = 'platform-unauthorized') AS refused,
         EXISTS (SELECT 1 FROM sessions WHERE lane = ${EVENT_LANE} AND due_at < now() - interval '5 minutes') AS overdue,
         (SELECT coalesce(fault, 'none') FROM ${LONGEST_AWAITED} AS awaited
          WHERE last_event_at < now() - interval '5 minutes') AS fault`,
    );
    const { refused, overdue, fault = null } = rows[0] ?? {};
    const facts = { canFetch: this.contract.canCall('getSession') };
    return healthOf(facts, {
      'The platform rejects the key for getSession. Check PLATFORM_API_KEY; sessions are fetched once it is accepted.':
        refused,
      'Sessions have waited for more than five minutes to be fetched.': overdue && facts.canFetch,
      // Each fault postpones its session, so that none is ever overdue.
      [`No fetch has answered the event of a session for more than five minutes (last fault: ${fault}). See NotebridgeNotesAwaited in the run-books.`]:
        fault !== null && facts.canFetch,
    });
  }

  @HealthIndicator('session-requests')
  async requestsHealth(): Promise<Health> {
    const { facts, reasons } = await requestsHealth(this.database.pool, {
      table: 'session_requests',
      since: 'requested_at',
      operation: 'createSession',
    });
    return healthOf(facts, reasons);
  }
}
