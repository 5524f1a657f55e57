import { Injectable } from '@nestjs/common';
import type pg from 'pg';
import { Clock } from '../../config/clock.js';
import { Database } from '../../database/database.js';
import { type Health, HealthIndicator, healthOf, namesOf } from '../../monitoring/health-indicator.js';
import { Macs } from '../../vault/macs.js';
import { API_KEY_GRANTS } from '../keys/api-keys.js';
import { warningsOf } from '../keys/key-rules.js';
import { SESSION_GRANTS } from '../sign-in/browser-sessions.js';

type Sql = Pick<pg.ClientBase, 'query'>;

/** The tables whose rows grant access. */
export const GRANTS = [API_KEY_GRANTS, SESSION_GRANTS] as const;

/** The rows that grant nothing because their MAC is missing or wrong, so this service did not write them. */
export async function rowsWithoutMac(
  sql: Sql,
  macs: Macs,
  tables: readonly Pick<(typeof GRANTS)[number], 'name' | 'withoutMac'>[] = GRANTS,
): Promise<{ table: string; id: string }[]> {
  const found: { table: string; id: string }[] = [];
  for (const table of tables) {
    for (const id of await table.withoutMac(sql, macs)) found.push({ table: table.name, id });
  }
  return found;
}

/** Reports rows that grant nothing, and keys that need an administrator. */
@Injectable()
export class GrantsHealth {
  constructor(
    private readonly database: Database,
    private readonly macs: Macs,
    private readonly clock: Clock,
  ) {}

  @HealthIndicator({ name: 'grants', needs: ['database'] })
  async health(): Promise<Health> {
    const { pool } = this.database;
    const altered = (await rowsWithoutMac(pool, this.macs)).map(({ table, id }) => `${table} ${id}`);
    const ending: string[] = [];
    let unused = 0;
    for await (const key of API_KEY_GRANTS.rows(pool)) {
      const warnings = warningsOf(key, true, this.clock.now());
      if (warnings.includes('expires-soon')) ending.push(key.id);
      if (warnings.includes('unused')) unused += 1;
    }
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
