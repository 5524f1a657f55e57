import { Injectable } from '@nestjs/common';
import { Database } from '../database/database.js';
import { type Health, HealthIndicator, healthOf } from '../monitoring/health-indicator.js';
import type { ReasonCode } from '../monitoring/health-texts.js';
import { Contract } from '../platform/contract/contract.js';
import { requestsHealth } from '../platform/send/requests-health.js';
import { LANES } from './model/session-row.js';
import { LONGEST_WAITING_SESSION } from './refresh/refresh-scheduler.repository.js';

/** SQL condition that a fetch of a session or of a processing id last failed like this. */
const hasFault = (fault: string): string => `(
  EXISTS (SELECT 1 FROM sessions WHERE due_at IS NOT NULL AND fault = '${fault}' AND lane <> ${LANES.requests})
  OR EXISTS (SELECT 1 FROM processing_sessions WHERE due_at IS NOT NULL AND fault = '${fault}'))`;

/** Failed fetches that health reports as separate causes. */
const PLATFORM_FAULTS: Readonly<Record<string, ReasonCode>> = {
  'platform-unreachable': 'platform-fault',
  'platform-fault': 'platform-fault',
  'rate-limited': 'rate-limited',
};

/** Reports sessions that cannot be fetched, and requests that wait. */
@Injectable()
export class SessionsHealth {
  constructor(
    private readonly database: Database,
    private readonly contract: Contract,
  ) {}

  @HealthIndicator({ name: 'sessions', needs: ['worker'] })
  async health(): Promise<Health> {
    const { rows } = await this.database.pool.query<
      Record<'refused' | 'elsewhere' | 'unreadable' | 'overdue', boolean> & { fault: string | null }
    >(
      `SELECT ${hasFault('platform-unauthorized')} AS refused, ${hasFault('platform-address')} AS elsewhere,
         ${hasFault('unreadable-answer')} AS unreadable,
         EXISTS (SELECT 1 FROM sessions WHERE lane = ${LANES.events} AND due_at < now() - interval '5 minutes') AS overdue,
         (SELECT coalesce(fault, 'none') FROM ${LONGEST_WAITING_SESSION} AS awaited
          WHERE last_event_at < now() - interval '5 minutes') AS fault`,
    );
    const { refused, elsewhere, unreadable, overdue, fault = null } = rows[0] ?? {};
    const canFetch = this.contract.canCall('getSession');
    const values = { operations: 'getSession' };
    const ofPlatform = fault !== null && PLATFORM_FAULTS[fault];
    return healthOf(
      [
        refused && { code: 'platform-unauthorized', values },
        elsewhere && { code: 'platform-address', values },
        unreadable && { code: 'unreadable-answers', values: { operations: 'sessions' } },
        canFetch && overdue && { code: 'sessions-late', follows: true },
        // Each fault postpones its session, so that none is ever overdue.
        canFetch && ofPlatform && { code: ofPlatform, values },
        canFetch && fault !== null && !ofPlatform && { code: 'notes-late', values: { fault }, follows: true },
      ],
      { canFetch },
    );
  }

  @HealthIndicator({ name: 'session-requests', needs: ['worker'] })
  async requestsHealth(): Promise<Health> {
    return healthOf(
      await requestsHealth(this.database.pool, {
        table: 'sessions',
        since: 'requested_at',
        operation: 'createSession',
      }),
    );
  }
}
