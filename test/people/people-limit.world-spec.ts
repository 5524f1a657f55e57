import type { Span } from '../../harness/world/time.js';
import type { WorldService } from '../../harness/world/world-service.js';
import type { TraceResponse } from '../../src/people/api/trace.dto.js';
import { Reconciler } from '../../src/people/reconcile/reconciler.js';
import { useWorld } from '../world/use-world.js';
import { peopleOf } from './mirroring.js';

/** Calls in a minute, as both sides count them. */
const CALLS = 12;

const world = useWorld({
  settings: { USER_MANAGEMENT_CALLS_PER_MINUTE: String(CALLS) },
  platform: { callsPerWindow: CALLS },
});
const { begin, put, verdict } = peopleOf(world);

let others: WorldService[];
let clients: number;
const underWay = new Set<Promise<void>>();

beforeEach(async () => {
  others = [];
  clients = 0;
  await put('providers/home');
  // Frees the permits of these calls.
  await world.advance('2 min');
});

const arrivals = () => world.platform.arrivals();
const creates = () => world.platform.arrivals('createClient');

/** Adds clients that take one call each. */
async function addClients(count: number): Promise<void> {
  for (let n = 0; n < count; n += 1) {
    clients += 1;
    await begin(`clients/c-${clients}`);
  }
}

/** Starts calls in each process in turn until no process gets a permit. The platform may delay their answers. */
async function startCalls(): Promise<void> {
  const reconcilers = [world.get(Reconciler), ...others.map(({ app }) => app.get(Reconciler, { strict: false }))];
  for (let denied = 0; denied < reconcilers.length; ) {
    const [next] = reconcilers.splice(0, 1) as [Reconciler];
    reconcilers.push(next);
    let isDenied = false;
    // An answer at the same time as the last change counts as outdated.
    await world.advance('1 ms');
    const call: Promise<void> = next.reconcileNext().then((isClaimed) => {
      isDenied = !isClaimed;
      underWay.delete(call);
    });
    underWay.add(call);
    await allDelayed();
    denied = isDenied ? denied + 1 : 0;
  }
}

/** Waits until the platform delays each call in flight, or its answer. */
const allDelayed = () =>
  world.eventually('every call is delayed', () => underWay.size === world.platform.simulator.state.timers.count);

/** Lets time pass for all processes, then starts the calls that are possible. */
async function pass(span: Span): Promise<void> {
  await world.advance(span);
  for (const other of others) await other.beat();
  await allDelayed();
  await startCalls();
}

describe('three processes', () => {
  beforeEach(async () => {
    others = [await world.startAnother(), await world.startAnother()];
  });
  afterEach(() => {
    const { rateLimited, largestWindow } = world.platform.simulator.state.arrivals.stats(60).userManagement;
    expect([rateLimited, largestWindow.all]).toEqual([0, CALLS]);
  });

  test('use the limit and never exceed it, with answers that take up to 15 seconds', async () => {
    world.platform.set({ latencyMs: [1, 15_000] });
    await addClients(1.5 * CALLS);
    for (let times = 0; creates() <= CALLS && times < 30; times += 1) await pass('4 s');
    await addClients(1.5 * CALLS);
    for (let times = 0; (creates() < clients || underWay.size > 0) && times < 100; times += 1) await pass('4 s');
    expect(creates()).toBe(3 * CALLS);
  });

  test('do not exceed it if a full window follows just before the end of one call’s minute', async () => {
    await addClients(1);
    await startCalls();
    await pass('59800 ms');
    await addClients(CALLS);
    await startCalls();
    expect(creates()).toBe(CALLS);
    await pass('300 ms');
    expect(creates()).toBe(1 + CALLS);
  });
});

test('a change by the API overtakes bulk work that was due before', async () => {
  for (const path of ['providers/i-1', 'providers/i-2']) await begin(path);
  await world.sql(`UPDATE people SET lane = 'bulk' WHERE external_id <> 'home'`);
  await begin('providers/now');
  await startCalls();
  const calls = await world.sql(
    `SELECT external_id AS person FROM platform_calls c JOIN people p ON p.id = c.person_id
     WHERE external_id <> 'home' ORDER BY c.id`,
  );
  expect(calls.map(({ person }) => person)).toEqual(['now', 'now', 'i-1', 'i-1']);
});

describe('a 429', () => {
  test.each<['seconds' | 'date' | 'absent', number, Span]>([
    ['seconds', 1_800, '1798 s'],
    ['date', 1_800, '1798 s'],
    ['absent', 0, '58 s'],
  ])('(Retry-After: %s) to a check stops all processes for as long as it says', async (retryAfter, seconds, during) => {
    others = [await world.startAnother()];
    await begin('providers/refused');
    await begin('providers/next');
    const before = arrivals();
    world.platform.injectFault({ kind: 'rate-limit', retryAfter, retryAfterSeconds: seconds });
    await startCalls();
    await put('providers/screen');
    await pass(during);
    expect(arrivals()).toBe(before + 1);

    await pass('3 s');
    for (const id of ['refused', 'next', 'screen']) {
      expect(await verdict(`providers/${id}`)).toEqual(['synced', null]);
      expect(world.platform.usersOf(id)).toHaveLength(1);
    }
    const body = { kind: 'provider', externalId: 'refused' };
    const { history } = (await world.call<TraceResponse>('POST', '/v1/people/trace', { body })).body;
    expect(history.filter(({ status }) => status === 429)).toMatchObject([{ outcome: 'rate-limited' }]);
  });

  test('with a short wait does not cut a longer one short', async () => {
    world.platform.set({ latencyMs: [4_000, 4_000] });
    for (const retryAfterSeconds of [1_800, 1]) world.platform.injectFault({ kind: 'rate-limit', retryAfterSeconds });
    await addClients(2);
    await startCalls();
    expect(underWay.size).toBe(2);
    const before = arrivals();
    for (let times = 0; times < 45; times += 1) await pass('100 ms');
    expect(arrivals()).toBe(before + 2);
    await pass('1700 s');
    expect(arrivals()).toBe(before + 2);
    world.platform.set({ latencyMs: [0, 0] });
    await pass('102 s');
    expect([await verdict('clients/c-1'), await verdict('clients/c-2')]).toEqual(Array(2).fill(['synced', null]));
  });
});
