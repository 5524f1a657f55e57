import { Injectable } from '@nestjs/common';
import { Database } from '../database/database.js';
import { type Health, HealthIndicator, healthOf } from '../http/server/health-indicator.js';
import { Contract } from '../platform/contract/contract.js';
import { requestsHealth } from '../platform/send/requests-health.js';
import { LANES } from './model/session-row.js';
import { LONGEST_AWAITED } from './refresh/refresh-scheduler.repository.js';

/** SQL condition that a fetch of a session or of a processing id last failed like this. */
const hasFault = (fault: string): string => `(
  EXISTS (SELECT 1 FROM sessions WHERE due_at IS NOT NULL AND fault = '${fault}' AND lane <> ${LANES.requests})
  OR EXISTS (SELECT 1 FROM processing_sessions WHERE due_at IS NOT NULL AND fault = '${fault}'))`;

/** Maximum counted sessions, because health is read often. */
const MAX_COUNTED = 100;

/** Reports sessions that cannot be fetched, and requests that wait or need a decision. */
@Injectable()
export class SessionsHealth {
  constructor(
    private readonly database: Database,
    private readonly contract: Contract,
  ) {}

  @HealthIndicator('sessions')
  async health(): Promise<Health> {
    const { rows } = await this.database.pool.query<
      Record<'refused' | 'elsewhere' | 'unreadable' | 'overdue', boolean> & { fault: string | null; incomplete: number }
    >(
      `SELECT ${hasFault('platform-unauthorized')} AS refused, ${hasFault('platform-address')} AS elsewhere,
         ${hasFault('unreadable-answer')} AS unreadable,
         (SELECT count(*)::int FROM (SELECT FROM sessions
            WHERE incomplete <> '{}' AND fetched_at > now() - interval '1 day'
            ORDER BY fetched_at DESC LIMIT ${MAX_COUNTED}) AS odd) AS incomplete,
         EXISTS (SELECT 1 FROM sessions WHERE lane = ${LANES.events} AND due_at < now() - interval '5 minutes') AS overdue,
         (SELECT coalesce(fault, 'none') FROM ${LONGEST_AWAITED} AS awaited
          WHERE last_event_at < now() - interval '5 minutes') AS fault`,
    );
    const { refused, elsewhere, unreadable, overdue, fault = null, incomplete = 0 } = rows[0] ?? {};
    const facts = { canFetch: this.contract.canCall('getSession'), incomplete };
    return healthOf(facts, {
      'The platform rejects the key for getSession. Check PLATFORM_API_KEY; sessions are fetched once it is accepted.':
        refused,
      'Another server than the platform answers getSession or getProcessingSession. Check PLATFORM_BASE_URL and their paths in PLATFORM_CONTRACT.':
        elsewhere,
      'Answers of the platform are unreadable, or are about another session; they are not stored. The check platform names the pointer and what it found.':
        unreadable,
      'Sessions have waited for more than five minutes to be fetched.': overdue && facts.canFetch,
      // Each fault postpones its session, so that none is ever overdue.
      [`No fetch has answered the event of a session for more than five minutes (last fault: ${fault}). See NotebridgeNotesAwaited in the run-books.`]:
        fault !== null && facts.canFetch,
      [`Parts of the answers about ${incomplete === MAX_COUNTED ? `${MAX_COUNTED} or more` : incomplete} sessions could not be read within a day. GET /v1/sessions shows them in incomplete; compare the answers with the platform's description.`]:
        incomplete > 0,
    });
  }

  @HealthIndicator('session-requests')
  async requestsHealth(): Promise<Health> {
    const { facts, reasons } = await requestsHealth(this.database.pool, {
      table: 'sessions',
      since: 'requested_at',
      operation: 'createSession',
    });
    return healthOf(facts, reasons);
  }
}
