import { Injectable } from '@nestjs/common';
import { type Health, HealthIndicator } from '../../http/server/health-indicator.js';
import { SessionRequestsRepository } from './session-requests.repository.js';

/** Tells an operator of requests that wait for a person's word, and of those that the platform does not take. */
@Injectable()
export class SessionRequestsHealth {
  constructor(private readonly requests: SessionRequestsRepository) {}

  @HealthIndicator('session-requests')
  async health(): Promise<Health> {
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
