import { Injectable } from '@nestjs/common';
import { Clock } from '../../config/clock.js';
import { type Health, HealthIndicator, healthOf, namesOf } from '../../monitoring/health-indicator.js';
import { ApiKeysRepository } from '../keys/api-keys.repository.js';
import { warningsOf } from '../keys/key-rules.js';
import { BrowserSessionsRepository } from '../sign-in/browser-sessions.repository.js';

/** Reports rows that grant nothing, and keys that need an administrator. */
@Injectable()
export class GrantsHealth {
  constructor(
    private readonly keys: ApiKeysRepository,
    private readonly sessions: BrowserSessionsRepository,
    private readonly clock: Clock,
  ) {}

  @HealthIndicator({ name: 'grants', needs: ['database'] })
  async health(): Promise<Health> {
    const altered: string[] = [];
    const ending: string[] = [];
    let unused = 0;
    for (const key of await this.keys.list()) {
      const warnings = warningsOf(key, this.keys.isGenuine(key), this.clock.now());
      if (warnings.includes('altered')) altered.push(`api_keys ${key.id}`);
      if (warnings.includes('expires-soon')) ending.push(key.id);
      if (warnings.includes('unused')) unused += 1;
    }
    for (const session of await this.sessions.all())
      if (!this.sessions.isGenuine(session)) altered.push(`browser_sessions ${session.id}`);
    const facts = { altered: altered.length, expireWithin30Days: ending.length, unusedFor90Days: unused };
    return healthOf(
      [
        altered.length > 0 && { code: 'grants-altered', values: { rows: namesOf(altered) } },
        ending.length > 0 && { code: 'keys-expire', values: { keys: namesOf(ending) } },
      ],
      facts,
    );
  }
}
