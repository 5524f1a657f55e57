import { Injectable } from '@nestjs/common';
import { Database } from '../database/database.js';
import { type Health, HealthIndicator } from '../http/server/health-indicator.js';
import { PlatformSessions } from './refresh/platform-sessions.js';
import { EVENT_LANE } from './refresh/refresh-lanes.js';

/** Tells an operator when sessions can't be fetched. */
@Injectable()
export class SessionsHealth {
  constructor(
    private readonly database: Database,
    private readonly platform: PlatformSessions,
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
}
