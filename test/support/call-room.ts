import { until } from '../../harness/until.js';
import { bulkPermits } from '../../src/platform/rate-limit/pacing.js';
import { query } from './databases.js';
import type { Mirror } from './service.js';
import { PLATFORM_ACCOUNT } from './service.js';

/**
 * The permits that are left for bulk work: an import makes so many calls and then stands still in its middle, however
 * long a test takes to look at it or to steer it. Interactive work keeps its own permits.
 */
interface CallRoom {
  /** Leaves permits for so many calls of bulk work from now on. */
  leave(calls: number): Promise<void>;
  /** Waits until so many calls have arrived since permits were left. */
  arrived(calls: number): Promise<void>;
  /** Waits until the permits that were left are used up and the calls answered; nothing more of bulk work is granted. */
  used(): Promise<void>;
  /** Frees every permit. */
  free(): Promise<void>;
}

/** Who made the calls that only fill the window. */
const NOBODY = 'nobody';

/** The room of a mirror whose limit is the simulator's. */
export function callRoom(mirror: Mirror): CallRoom {
  const { database } = mirror;
  const { callsPerWindow, windowSeconds } = mirror.simulator.state.settings;
  const permits = bulkPermits({ calls: callsPerWindow, windowMs: windowSeconds * 1_000 });
  let before = 0;
  let left = 0;
  const arrived = (calls: number) =>
    until(`${calls} calls have arrived`, () => mirror.arrivals() >= before + calls).then(() => undefined);
  return {
    arrived,
    async leave(calls) {
      before = mirror.arrivals();
      left = calls;
      // Grants are serialised by the budget's row, which the first statement locks.
      await query(
        database,
        `BEGIN;
         INSERT INTO call_budgets (account) VALUES ('${PLATFORM_ACCOUNT}')
           ON CONFLICT (account) DO UPDATE SET bulk_next_at = NULL;
         DELETE FROM platform_calls WHERE worker = '${NOBODY}';
         UPDATE platform_calls SET expires_at = clock_timestamp() WHERE outcome IS NOT NULL;
         INSERT INTO platform_calls (account, operation, lane, granted_at, answered_at, expires_at, outcome, worker)
           SELECT '${PLATFORM_ACCOUNT}', 'none', 'interactive', now(), now(), now() + interval '1 day', 'success',
             '${NOBODY}'
           FROM generate_series(1, ${permits - calls} - (SELECT count(*) FROM platform_calls WHERE outcome IS NULL));
         COMMIT`,
      );
    },
    async used() {
      await arrived(left);
      const underWay = 'SELECT 1 FROM platform_calls WHERE outcome IS NULL LIMIT 1';
      await until('the calls are answered', async () => (await query(database, underWay)).length === 0);
      // Their permits become free again a window after the answers.
      await query(database, `UPDATE call_budgets SET bulk_next_at = now() + interval '1 day'`);
    },
    async free() {
      await query(
        database,
        `BEGIN; UPDATE call_budgets SET bulk_next_at = NULL; DELETE FROM platform_calls WHERE worker = '${NOBODY}'; COMMIT`,
      );
    },
  };
}
