import { Injectable, Logger } from '@nestjs/common';
import { type Health, HealthIndicator } from '../../http/server/health-indicator.js';
import { type MacFields, Macs } from '../../vault/macs.js';

/** Tables whose rows grant rights. */
type GrantTable = 'api_keys' | 'browser_sessions';

/** Rows that were refused and are remembered; more would only fill the memory. */
const MAX_REMEMBERED = 1_000;

/**
 * Rows that grant rights carry a MAC over everything that they grant. Whoever can only write to the database cannot make
 * one, so such a row grants nothing.
 */
@Injectable()
export class Grants {
  private readonly log = new Logger(Grants.name);
  private readonly refused = new Set<string>();

  constructor(private readonly macs: Macs) {}

  sign(table: GrantTable, id: string, fields: MacFields): Buffer {
    return this.macs.sign(table, [id, ...fields]);
  }

  /** True if this service wrote the row. Any other row is counted and logged. */
  isGenuine(table: GrantTable, id: string, fields: MacFields, mac: Uint8Array | null): boolean {
    if (this.macs.verify(table, [id, ...fields], mac)) return true;
    const row = `${table} ${id}`;
    if (!this.refused.has(row)) this.log.error({ msg: 'a row that grants rights has no valid MAC', table, row: id });
    if (this.refused.size < MAX_REMEMBERED) this.refused.add(row);
    return false;
  }

  @HealthIndicator('grants')
  health(): Health {
    const rows = this.refused.size;
    if (rows === 0) return { status: 'ok' };
    const reason = `${rows} API keys or browser sessions have no valid MAC and grant nothing: somebody wrote them to the database, or their key is missing in AUDIT_KEYS. The log names them.`;
    return { status: 'degraded', reason, facts: { rows } };
  }
}
