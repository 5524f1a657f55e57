import { Injectable } from '@nestjs/common';
import { Database } from '../database/database.js';
import { type Health, HealthIndicator } from '../http/server/health-indicator.js';
import { SessionRequestsRepository } from './create/session-requests.repository.js';
import { PlatformSessions } from './refresh/platform-sessions.js';
import { EVENT_LANE } from './refresh/wanted-refreshes.repository.js';

/** Shows an operator when sessions can't be fetched, and of requests that wait or need a decision. */
@Injectable()
export class SessionsHealth {
  constructor(
    private readonly database: Database,
    private readonly platform: PlatformSessions,
    private readonly requests: SessionRequestsRepository,
  ) {}

  @HealthIndicator('sessions')
  async health(): Promise<Health> {
    const { rows } = await this.database.pool.query<{ refused: boolean; overdue: boolean }>(
      `SELECT EXISTS (SELECT 1 FROM sessions WHERE due_at IS NOT NULL AND fault = 'platform-unauthorized') AS refused,
         EXISTS (SELECT 1 FROM sessions WHERE lane = ${EVENT_LANE} AND due_at < now() - interval '5 minutes') AS overdue`,
    );
    const { refused = false, overdue = false } = rows[0] ?? {};
    const facts = { canFetch: this.platform.canFetchSession };
    if (refused) {
      const reason =
        'The platform refuses the key for getSession; check PLATFORM_API_KEY. Sessions wait and are fetched later.';
      return { status: 'degraded', reason, facts };
    }
    if (overdue && facts.canFetch) {
      return { status: 'degraded', reason: 'Sessions have waited for more than five minutes to be fetched.', facts };
    }
    return { status: 'ok', facts };
  }

  @HealthIndicator('session-requests')
  async requestsHealth(): Promise<Health> {
    const { unknown, refused, overdue } = await this.requests.standing();
    const facts = { unknown };
    if (refused > 0) {
      const reason =
        'The platform refuses the key for createSession; check PLATFORM_API_KEY. Requests for sessions wait.';
      return { status: 'degraded', reason, facts };
    }
    if (overdue > 0) {
      return { status: 'degraded', reason: 'Requests for sessions have waited for more than five minutes.', facts };
    }
    return { status: 'ok', facts };
  }
}
