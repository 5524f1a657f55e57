import { Injectable } from '@nestjs/common';
import { type Health, HealthIndicator } from '../../http/server/health-indicator.js';
import type { StopCode } from '../model/person-codes.js';
import { PlatformPeople } from '../reconcile/platform-people.js';
import { CircuitsRepository } from '../store/circuits.repository.js';

const REASONS: Record<StopCode, (operations: string) => string> = {
  'platform-address': (operations) =>
    `What answers ${operations} is not the platform's user management: check PLATFORM_BASE_URL and PLATFORM_CONTRACT; work is kept.`,
  'platform-unauthorized': (operations) =>
    `The platform answers 403 to ${operations}: check PLATFORM_API_KEY; work is kept.`,
  'platform-fault': (operations) =>
    `The platform gives no readable answer to ${operations}: single calls find out when it does; work is kept.`,
};

/** How the mirror is: what stopped an operation, or a contract that lacks the API key's header, degrade it. */
@Injectable()
export class PeopleHealth {
  constructor(
    private readonly circuits: CircuitsRepository,
    private readonly platform: PlatformPeople,
  ) {}

  @HealthIndicator('people')
  async check(): Promise<Health> {
    if (!this.platform.isConfigured) {
      return {
        status: 'degraded',
        reason: 'PLATFORM_CONTRACT has no apiKey.header: people are kept and nothing is sent.',
      };
    }
    const stopped = await this.circuits.stopped();
    const [first] = stopped;
    if (!first) return { status: 'ok' };
    const isRefused = first.code !== 'platform-fault';
    const operations = stopped
      .filter(({ code }) => (code !== 'platform-fault') === isRefused)
      .map(({ operation }) => operation)
      .join(', ');
    const code = stopped.some((one) => one.code === 'platform-address') ? 'platform-address' : first.code;
    return { status: 'degraded', reason: REASONS[code](operations), facts: { stopped: operations } };
  }
}
