import pg from 'pg';
import { neverAnalysed, planOf } from '../harness/query-plans.js';
import { until } from '../harness/until.js';
import { Clock } from '../src/config/clock.js';
import type { Env } from '../src/config/env.js';
import type { Database } from '../src/database/database.js';
import { DueRows, type DueTable, type Leased } from '../src/queue/due-rows/due-rows.js';
import { WorkerProcess } from '../src/queue/due-rows/worker-process.js';
import { openDatabase } from './support/open-database.js';
import { type Mirror, useMirrors } from './support/service.js';
import { statementsOf } from './support/statements.js';

const TABLE = { name: 'errands', key: 'id', lanes: [{ lane: 0 }, { lane: 1 }], effectMs: 0 };

interface Errand {
  id: string;
  note: string | null;
}

class HeldClock extends Clock {
  passedMs = 0;

  override monotonicMs(): number {
    return super.monotonicMs() + this.passedMs;
  }
}

/** A process that works on errands; it lives in this one. */
interface Peer {
  readonly rows: DueRows<Errand>;
  readonly process: WorkerProcess;
  readonly clock: HeldClock;
  /** As after a SIGKILL or a SIGSTOP: it beats no more, and what it leased last has passed. */
  falls(): Promise<void>;
}

describe('rows that are due', () => {
  let mirror: Mirror;
  let database: Database;
  let sql: pg.Pool;
  const ending: (() => Promise<void>)[] = [];

  afterAll(async () => {
    await database.onApplicationShutdown();
  });

  const newMirror = useMirrors();

  beforeAll(async () => {
    mirror = await newMirror();
    database = openDatabase(mirror.database);
    sql = mirror.database.sql;
    await sql.query(
      `CREATE TABLE errands (id int PRIMARY KEY, lane smallint NOT NULL DEFAULT 0, due_at timestamptz, note text,
         lease_owner uuid, lease_no int NOT NULL DEFAULT 0, lease_safe_at timestamptz)`,
    );
    await sql.query('CREATE INDEX errands_due ON errands (lane, due_at, id) WHERE due_at IS NOT NULL');
  });

  afterEach(async () => {
    for (const end of ending.splice(0)) await end();
    await sql.query('TRUNCATE errands');
  });

  const newPeer = async (table: Partial<DueTable> = {}): Promise<Peer> => {
    const clock = new HeldClock();
    const process = new WorkerProcess({ hasRole: () => true } as unknown as Env, clock, database);
    await process.onModuleInit();
    let beats = true;
    const stop = async () => {
      if (!beats) return;
      beats = false;
      await process.onApplicationShutdown();
    };
    ending.push(stop);
    return {
      rows: new DueRows<Errand>({ ...TABLE, ...table }, database, process),
      process,
      clock,
      async falls() {
        await stop();
        await sql.query(
          `UPDATE errands SET lease_safe_at = lease_safe_at - interval '3 seconds' WHERE lease_owner = $1`,
          [process.id],
        );
      },
    };
  };
  /** @param lane of each errand; they fall due in this order */
  const newErrands = (...lanes: number[]) =>
    sql.query(
      `INSERT INTO errands (id, lane, due_at) SELECT n, lane, now() - interval '1 hour' + n * interval '1 second'
       FROM unnest($1::int[]) WITH ORDINALITY AS wanted(lane, n)`,
      [lanes],
    );
  /** A machine that stood still for seconds makes a process wait for its next beat. */
  const claimed = ({ rows }: Peer): Promise<Leased<Errand>> => until('a row is claimed', () => rows.claim());
  const note = (value: string) => ({ set: 'note = $1, due_at = NULL', values: [value] });

  it('are claimed by one process each, the urgent lane first, then whoever is due for longest', async () => {
    await newErrands(1, 0, 1, 0);
    // Their leases hold also when a stalled machine makes them count as dead for a moment.
    const peers = [await newPeer({ effectMs: 3_600_000 }), await newPeer({ effectMs: 3_600_000 })];
    const order: number[] = [];
    for (let at = 0; at < 4; at++) order.push(Number((await claimed(peers[at % 2] as Peer)).row.id));
    expect(order).toEqual([2, 4, 1, 3]);
    for (const { rows } of peers) {
      expect(await rows.claim()).toBeUndefined();
      expect(await rows.nextDueAt()).toBeUndefined();
    }
  });

  it('of a lane with fewer places leave the others to more urgent ones', async () => {
    await newErrands(1, 1, 1);
    const peer = await newPeer({ lanes: [{ lane: 0 }, { lane: 1, atOnce: 2 }] });
    const { lease } = await claimed(peer);
    await claimed(peer);
    expect(await peer.rows.claim()).toBeUndefined();
    await sql.query(`INSERT INTO errands (id, due_at) VALUES (4, now())`);
    expect((await claimed(peer)).row.id).toBe(4);
    peer.rows.done(lease);
    expect((await claimed(peer)).row.id).not.toBe(4);
  });

  it('are free within eight seconds after their process was killed, and not before it is dead', async () => {
    const service = await mirror.start({ ROLES: 'worker' });
    const [owner] = (await sql.query('SELECT id FROM workers ORDER BY alive_until DESC LIMIT 1')).rows;
    await newErrands(0);
    await sql.query(`UPDATE errands SET lease_owner = $1, lease_no = 1, lease_safe_at = now()`, [owner.id]);
    const peer = await newPeer();
    await service.kill();
    const alive = 'SELECT extract(epoch FROM alive_until - now())::float8 AS seconds FROM workers WHERE id = $1';
    expect((await sql.query(alive, [owner.id])).rows[0].seconds).toBeLessThanOrEqual(8);
    await until('the row is free', () => peer.rows.claim());
    expect((await sql.query(alive, [owner.id])).rows[0].seconds).toBeLessThanOrEqual(0);
  });

  it('are free at once when their process ends in order', async () => {
    const service = await mirror.start({ ROLES: 'worker' });
    const [owner] = (await sql.query('SELECT id FROM workers ORDER BY alive_until DESC LIMIT 1')).rows;
    await service.kill('SIGTERM');
    const { rows } = await sql.query('SELECT alive_until <= now() AS left FROM workers WHERE id = $1', [owner.id]);
    expect(rows).toEqual([{ left: true }]);
  });

  it('stay their process’ own while it lives, however long it works', async () => {
    await newErrands(0);
    const other = await newPeer();
    await until('it was asked for while its owner lived', async () => {
      const { rows } = await sql.query(
        `INSERT INTO workers (id, alive_until) VALUES (gen_random_uuid(), now() + interval '8 seconds') RETURNING id`,
      );
      const [{ id }] = rows;
      await sql.query(`UPDATE errands SET lease_owner = $1, lease_no = 1, lease_safe_at = now() - interval '1 day'`, [
        id,
      ]);
      const claim = await other.rows.claim();
      const alive = await sql.query('SELECT FROM workers WHERE id = $1 AND alive_until > now()', [id]);
      if (alive.rowCount === 0) return false; // the machine stood still for longer
      expect(claim).toBeUndefined();
      return true;
    });
  });

  it('are settled by whoever holds the lease, never by a process that came back from the dead', async () => {
    await newErrands(0);
    const [zombie, heir] = [await newPeer(), await newPeer()];
    const lost = await claimed(zombie);
    await zombie.falls();
    const held = await claimed(heir);
    expect(await zombie.rows.settle(database.pool, lost.lease, note('of the dead'))).toBe(false);
    await database.transaction(async (tx) => expect(await zombie.rows.lock(tx, lost.lease)).toBeUndefined());
    expect((await sql.query('SELECT note, lease_owner FROM errands')).rows).toEqual([
      { note: null, lease_owner: heir.process.id },
    ]);
    expect(await heir.rows.settle(database.pool, held.lease, note('of the heir'))).toBe(true);
    expect((await sql.query('SELECT note, lease_owner FROM errands')).rows).toEqual([
      { note: 'of the heir', lease_owner: null },
    ]);
  });

  it('that were claimed again by the same process are not settled by its earlier turn', async () => {
    await newErrands(0);
    const peer = await newPeer();
    const first = await claimed(peer);
    peer.rows.done(first.lease);
    await sql.query(`UPDATE errands SET lease_safe_at = now() - interval '1 second'`);
    await claimed(peer);
    expect(await peer.rows.settle(database.pool, first.lease, note('of the first'))).toBe(false);
  });

  it('that may have sent something stay leased until it has taken effect or never will', async () => {
    await newErrands(0);
    const [dead, heir] = [await newPeer({ effectMs: 3_600_000 }), await newPeer()];
    await claimed(dead);
    await dead.falls();
    expect(await heir.rows.claim()).toBeUndefined();
    await sql.query(`UPDATE errands SET lease_safe_at = now() - interval '1 second'`);
    await claimed(heir);
  });

  it('are not claimed by a process that was held up for more than five seconds, until it beats again', async () => {
    await newErrands(0);
    const peer = await newPeer();
    peer.clock.passedMs = 5_001;
    expect(peer.process.mayWork()).toBe(false);
    expect(await peer.rows.claim()).toBeUndefined();
    await until('it beat again', () => peer.process.mayWork());
    await claimed(peer);
  });

  it('are not claimed by a process that the database counts as dead', async () => {
    await newErrands(0);
    const peer = await newPeer();
    await peer.falls();
    jest.spyOn(peer.process, 'mayWork').mockReturnValue(true);
    expect(await peer.rows.claim()).toBeUndefined();
    expect((await sql.query('SELECT lease_owner FROM errands')).rows).toEqual([{ lease_owner: null }]);
  });

  it('are not lost when the commit of a claim or a settle gets no answer', async () => {
    await newErrands(0);
    const peer = await newPeer();
    const query = jest.spyOn(database.pool, 'query');
    query.mockImplementation(async (...args: unknown[]) => {
      const result: pg.QueryResult = await Reflect.apply(pg.Pool.prototype.query, database.pool, args);
      if (result.rowCount) throw new Error('Connection terminated unexpectedly');
      return result;
    });
    await until('a claim gets no answer', () =>
      peer.rows.claim().then(
        () => false,
        ({ message }: Error) => message.startsWith('Connection terminated'),
      ),
    );
    query.mockRestore();
    expect((await sql.query('SELECT lease_owner FROM errands')).rows).toEqual([{ lease_owner: peer.process.id }]);
    const again = await until('it is claimed again', () => peer.rows.claim());
    expect(again.lease.no).toBe(2);
    expect(await peer.rows.claim()).toBeUndefined();
  });

  it('are found by their index, however many there are and however little the planner knows', async () => {
    await neverAnalysed(sql, 'errands');
    // All but two are due tomorrow, or not at all.
    await sql.query(
      `INSERT INTO errands (id, lane, due_at) SELECT n, n % 2,
         CASE WHEN n <= 2 THEN now() WHEN n % 3 > 0 THEN now() + interval '1 day' END
       FROM generate_series(1, 50000) n`,
    );
    const peer = await newPeer();
    const statements = await statementsOf(['errands'], async () => {
      const { lease } = await claimed(peer);
      await claimed(peer);
      expect(await peer.rows.claim()).toBeUndefined();
      await peer.rows.nextDueAt();
      await database.transaction((tx) => peer.rows.lock(tx, lease));
      await peer.rows.settle(database.pool, lease, note('done'));
    });
    // The claim, the next moment, the lock and the end; a claim is made again after a stall.
    expect(new Set(statements.map(({ text }) => text)).size).toBe(4);
    for (const statement of statements) {
      const { fullReads, rowsRead } = await planOf(sql, statement, { large: ['errands'], execute: true });
      expect([statement.text, fullReads]).toEqual([statement.text, []]);
      expect(rowsRead).toBeLessThan(10);
    }
  });
});
