import { Injectable } from '@nestjs/common';
import { type Health, HealthIndicator } from '../../http/server/health-indicator.js';
import { PlatformPeople } from '../reconcile/platform-people.js';
import { CircuitRepository } from '../store/circuit.repository.js';

/** How the mirror is: what stopped an operation, or a contract that lacks the API key's header, degrade it. */
@Injectable()
export class PeopleHealth {
  constructor(
    private readonly circuits: CircuitRepository,
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
    if (stopped.length === 0) return this.answers();
    const operations = stopped.map(({ operation }) => operation).join(', ');
    const reason = stopped.some(({ code }) => code === 'platform-address')
      ? `What answers ${operations} is not the platform's user management: check PLATFORM_BASE_URL and PLATFORM_CONTRACT; work is kept.`
      : `The platform answers 403 to ${operations}: check PLATFORM_API_KEY; work is kept.`;
    return { status: 'degraded', reason, facts: { stopped: operations } };
  }

  private async answers(): Promise<Health> {
    const silent = await this.circuits.silent();
    if (silent.length === 0) return { status: 'ok' };
    const operations = silent.join(', ');
    const reason = `The platform gives no readable answer to ${operations}: single calls find out when it does; work is kept.`;
    return { status: 'degraded', reason, facts: { stopped: operations } };
  }
}
