import { Clock } from '../../src/config/clock.js';
import { Env } from '../../src/config/env.js';
import type { Database } from '../../src/database/database.js';
import { Retention } from '../../src/operations/retention.js';
import type { Poller } from '../../src/queue/notifier/poller.js';
import { auditOf } from './audit.js';

/** Drops what is older than 90 days. @param settings beside @returns how many rows of each kind went */
export function dropOld(database: Database, settings: Partial<Env> = {}): Promise<Record<string, number>> {
  const env = Object.assign(new Env(), { RETENTION_DAYS: 90 }, settings);
  return new Retention(database, env, new Clock(), {} as Poller, auditOf(database)).dropOld();
}
