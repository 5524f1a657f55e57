import { Injectable } from '@nestjs/common';
import { type Health, HealthIndicator } from '../http/server/health-indicator.js';
import { Vault } from './vault.js';

/** Tells of a key that was dropped from DATA_KEYS too early: what it had sealed can't be read by anybody. */
@Injectable()
export class VaultHealth {
  constructor(private readonly vault: Vault) {}

  @HealthIndicator('vault')
  health(): Health {
    const missing = this.vault.missingKeys.join(', ');
    if (missing === '') return { status: 'ok' };
    const reason = `DATA_KEYS lacks ${missing}, which sealed data that is in use: add what is missing behind the first key and restart; nothing is lost.`;
    return { status: 'degraded', reason, facts: { missing } };
  }
}
