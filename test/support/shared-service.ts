import type { Service } from '../../harness/service.js';
import { until } from '../../harness/until.js';
import { query } from './databases.js';
import { type Mirror, type MirrorOptions, PLATFORM_ACCOUNT, useMirrors } from './service.js';

/** A platform, a database and one process of the service. */
interface SharedService {
  readonly mirror: Mirror;
  readonly service: Service;
}

/** What holds people, their imports, and what was done and told of them; their parts go with them. The audit trail only grows. */
const TABLES = [
  'client_providers',
  'people',
  'platform_users',
  'imports',
  'provider_keys',
  'platform_calls',
  'call_budgets',
  'circuits',
  'feed_events',
  'idempotency_records',
];

/**
 * PostgreSQL's codes of what comes of work that goes on meanwhile: two transactions waited for each other, or a row came
 * that names one that is going.
 */
const OF_OTHERS = ['40P01', '23503'];

/**
 * To be called once in a suite: its tests share one process of the service, since a start takes seconds of work, and
 * each begins with nobody and no import on either side.
 */
export function useSharedService(options: MirrorOptions = {}): SharedService {
  const newMirror = useMirrors();
  let mirror: Mirror;
  let service: Service;
  beforeAll(async () => {
    mirror = await newMirror(options);
    service = await mirror.start();
  });
  beforeEach(() => forgetEverybody(mirror));
  return {
    get mirror() {
      return mirror;
    },
    get service() {
      return service;
    },
  };
}

/** Empties the database and the platform while the service runs. */
export async function forgetEverybody({ database, simulator }: Mirror): Promise<void> {
  // A call that is under way would be answered to somebody who is not there any more.
  await query(
    database,
    `INSERT INTO call_budgets (account, blocked_until) VALUES ($1, now() + interval '1 day')
     ON CONFLICT (account) DO UPDATE SET blocked_until = excluded.blocked_until`,
    [PLATFORM_ACCOUNT],
  );
  const underWay = 'SELECT 1 FROM platform_calls WHERE outcome IS NULL LIMIT 1';
  await until('no call is under way', async () => (await query(database, underWay)).length === 0);
  // One transaction. What the service does meanwhile may lock the same rows in another order.
  const deletions = TABLES.map((table) => `DELETE FROM ${table}`).join('; ');
  await until('everybody is forgotten', () =>
    query(database, deletions).then(
      () => true,
      (error: { code?: string }) => {
        if (OF_OTHERS.includes(error.code ?? '')) return false;
        throw error;
      },
    ),
  );
  simulator.state.reset();
}
