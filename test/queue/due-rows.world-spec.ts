import { ManualHeartbeat } from '../../harness/world/world-queue.js';
import { Clock } from '../../src/config/clock.js';
import type { Env } from '../../src/config/env.js';
import { Database } from '../../src/database/database.js';
import { PrismaService } from '../../src/database/prisma.service.js';
import { DueRows, type DueTable } from '../../src/due-rows/due-rows.js';
import type { WorkerProcess } from '../../src/processes/worker-process.js';
import { useWorld } from '../world/use-world.js';

const TABLE = { name: 'errands', columns: '*', key: 'id', lanes: [{ lane: 0 }, { lane: 1 }], effectMs: 0 };
/** Longer than a heartbeat is valid. */
const EXPIRED = '9 s';
/** Longer than the minimum duration of a lease. */
const SAFE = '3 s';

interface Errand {
  id: number;
}

/** A process that works on errands. */
interface Peer {
  readonly rows: DueRows<Errand>;
  readonly process: WorkerProcess;
  beat(): Promise<void>;
}

const world = useWorld();
const peers: Peer[] = [];

beforeAll(() =>
  world.sql(
    `CREATE TABLE errands (id int PRIMARY KEY, lane smallint NOT NULL DEFAULT 0, due_at timestamptz, note text,
       lease_owner uuid, lease_no int NOT NULL DEFAULT 0, lease_safe_at timestamptz)`,
  ),
);
afterEach(async () => {
  for (const { process } of peers.splice(0)) await process.onApplicationShutdown();
  await world.sql('DELETE FROM errands');
});
afterAll(() => world.sql('DROP TABLE errands'));

async function newPeer(table: Partial<DueTable> = {}): Promise<Peer> {
  const env = { hasRole: () => true } as unknown as Env;
  const database = world.get(Database);
  const process = new ManualHeartbeat(env, world.get(Clock), world.get(PrismaService));
  await process.onModuleInit();
  const peer = {
    rows: new DueRows<Errand>({ ...TABLE, ...table }, database, process),
    process,
    beat: () => process.beat(),
  };
  peers.push(peer);
  return peer;
}

/** @param lanes of the errands, which fall due in this order */
const newErrands = (...lanes: number[]) =>
  world.sql(
    `INSERT INTO errands (id, lane, due_at) SELECT n, lane, now() - interval '1 hour' + n * interval '1 second'
     FROM unnest($1::int[]) WITH ORDINALITY AS wanted(lane, n)`,
    [lanes],
  );
const claimed = async ({ rows }: Peer) => {
  const lease = await rows.claim();
  if (!lease) throw new Error('no row was claimed');
  return lease;
};
const note = (value: string) => ({ set: 'note = $1, due_at = NULL', values: [value] });
const settle = ({ rows }: Peer, lease: Awaited<ReturnType<typeof claimed>>['lease'], value: string) =>
  rows.settle(world.get(Database).pool, lease, note(value));
const stored = () => world.sql('SELECT note, lease_owner FROM errands');

test('each due row is claimed once: the urgent lane first, then the longest due', async () => {
  await newErrands(1, 0, 1, 0);
  const two = [await newPeer(), await newPeer()];
  const order: number[] = [];
  for (let at = 0; at < 4; at++) order.push((await claimed(two[at % 2] as Peer)).row.id);
  expect(order).toEqual([2, 4, 1, 3]);
  for (const { rows } of two) expect(await rows.claim()).toBeUndefined();
});

test('a lane with limited concurrency leaves slots for more urgent rows', async () => {
  await newErrands(1, 1, 1);
  const peer = await newPeer({ lanes: [{ lane: 0 }, { lane: 1, concurrency: 2 }] });
  const { lease } = await claimed(peer);
  await claimed(peer);
  expect(await peer.rows.claim()).toBeUndefined();
  await world.sql('INSERT INTO errands (id, due_at) VALUES (4, now())');
  expect((await claimed(peer)).row.id).toBe(4);
  peer.rows.done(lease);
  expect((await claimed(peer)).row.id).not.toBe(4);
});

test('a row stays leased until the heartbeats of its process end', async () => {
  await newErrands(0);
  const [owner, other] = [await newPeer(), await newPeer()];
  await claimed(owner);
  for (let beats = 0; beats < 10; beats++) {
    await world.advance('7 s');
    for (const { beat } of [owner, other]) await beat();
    expect(await other.rows.claim()).toBeUndefined();
  }
  await world.advance(EXPIRED);
  await other.beat();
  await claimed(other);
});

test('a shutdown frees the rows of its process', async () => {
  await newErrands(0);
  const [owner, other] = [await newPeer(), await newPeer()];
  await claimed(owner);
  peers.splice(peers.indexOf(owner), 1);
  await owner.process.onApplicationShutdown();
  await world.advance(SAFE);
  await claimed(other);
});

test('a stale process stores nothing after another one has claimed its row', async () => {
  await newErrands(0);
  const [stale, next] = [await newPeer(), await newPeer()];
  const lost = await claimed(stale);
  await world.advance(EXPIRED);
  await next.beat();
  const held = await claimed(next);
  expect(await settle(stale, lost.lease, 'stale')).toBe(false);
  await world.get(Database).transaction(async (tx) => expect(await stale.rows.lock(tx, lost.lease)).toBeUndefined());
  expect(await stored()).toEqual([{ note: null, lease_owner: next.process.id }]);
  expect(await settle(next, held.lease, 'next')).toBe(true);
  expect(await stored()).toEqual([{ note: 'next', lease_owner: null }]);
});

test('an earlier lease of the same process stores nothing', async () => {
  await newErrands(0);
  const peer = await newPeer();
  const first = await claimed(peer);
  peer.rows.done(first.lease);
  await world.advance(SAFE);
  await claimed(peer);
  expect(await settle(peer, first.lease, 'first')).toBe(false);
});

test('a row stays leased while the call of a killed process may take effect', async () => {
  await newErrands(0);
  const [killed, next] = [await newPeer({ effectMs: 60_000 }), await newPeer()];
  await claimed(killed);
  await world.advance('59 s');
  await next.beat();
  expect(await next.rows.claim()).toBeUndefined();
  await world.advance('2 s');
  await next.beat();
  await claimed(next);
});

test('a process without a heartbeat for five seconds claims nothing until the next one', async () => {
  await newErrands(0);
  const peer = await newPeer();
  await world.advance('6 s');
  expect(peer.process.hasFreshHeartbeat()).toBe(false);
  expect(await peer.rows.claim()).toBeUndefined();
  await peer.beat();
  await claimed(peer);
});

test('a process whose heartbeat has expired in the database claims nothing', async () => {
  await newErrands(0);
  const peer = await newPeer();
  await world.advance(EXPIRED);
  jest.spyOn(peer.process, 'hasFreshHeartbeat').mockReturnValue(true);
  expect(await peer.rows.claim()).toBeUndefined();
  expect(await stored()).toEqual([{ note: null, lease_owner: null }]);
});

test('a row is claimed again when the commit of its claim gets no answer', async () => {
  await newErrands(0);
  const peer = await newPeer();
  const { pool } = world.get(Database);
  const { query } = pool;
  const losing = jest.spyOn(pool, 'query').mockImplementation(async (...args: unknown[]) => {
    await Reflect.apply(query, pool, args);
    throw new Error('Connection terminated unexpectedly');
  });
  await expect(peer.rows.claim()).rejects.toThrow('Connection terminated');
  losing.mockRestore();
  expect(await stored()).toEqual([{ note: null, lease_owner: peer.process.id }]);
  await world.advance(SAFE);
  await peer.beat();
  expect((await claimed(peer)).lease.no).toBe(2);
  expect(await peer.rows.claim()).toBeUndefined();
});
