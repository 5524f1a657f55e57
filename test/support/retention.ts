import { Clock } from '../../src/config/clock.js';
import { Env } from '../../src/config/env.js';
import type { Database } from '../../src/database/database.js';
import { Retention } from '../../src/operations/retention.js';
import type { Poller } from '../../src/queue/notifier/poller.js';

/** Drops what is older than 90 days. @returns how many rows of each kind went */
export const dropOld = (database: Database): Promise<Record<string, number>> =>
  new Retention(database, Object.assign(new Env(), { RETENTION_DAYS: 90 }), new Clock(), {} as Poller).dropOld();
