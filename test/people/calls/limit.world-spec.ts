import type { Span } from '../../../harness/world/time.js';
import { useWorld } from '../../world/use-world.js';
import { peopleOf } from '../mirroring.js';

/** Calls in a minute, as both sides count them. */
const CALLS = 40;

const world = useWorld({
  settings: { USER_MANAGEMENT_CALLS_PER_MINUTE: String(CALLS) },
  platform: { callsPerWindow: CALLS },
});
const { begin, verdicts } = peopleOf(world);

const SYNCED = ['synced', null];

async function addProviders(count: number, from = 0): Promise<string[]> {
  const paths = Array.from({ length: count }, (_, n) => `providers/l-${from + n}`);
  for (const path of paths) await begin(path);
  return paths;
}

/** Lets the limiter's windows pass. */
async function pass(span: Span, times: number): Promise<void> {
  for (let time = 0; time < times; time += 1) {
    await world.advance(span);
    await world.settle();
  }
}

const stats = () => world.platform.simulator.state.arrivals.stats(60).userManagement;

/** Expects that the platform never had to refuse a call because of the limit. */
const expectKept = () => expect([stats().rateLimited, stats().largestWindow.all <= CALLS]).toEqual([0, true]);

test('no minute has more calls than the limit, and the limit is nearly used', async () => {
  const paths = await addProviders(30);
  await pass('820 ms', 110);
  expectKept();
  expect(stats().largestWindow.all).toBeGreaterThan(0.85 * CALLS);
  await pass('820 ms', 10);
  expect(await verdicts(paths)).toEqual(paths.map(() => SYNCED));
});

test('no minute has more calls than the limit after a wiped queue', async () => {
  await addProviders(25);
  for (let times = 0; times < 8; times += 1) {
    await pass('1700 ms', 5);
    if (times === 3) world.forgetJobs();
  }
  expectKept();
  expect(stats().largestWindow.all).toBeGreaterThan(0.8 * CALLS);
});
