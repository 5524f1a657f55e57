import { Logger } from '@nestjs/common';
import { Clock } from '../../config/clock.js';
import { Random } from '../../config/random.js';
import type { DueLoopDeps } from '../../due-rows/due-loop.js';
import type { Leased } from '../../due-rows/due-rows.js';
import { PlatformError } from '../contract/platform-errors.js';
import { type FetchColumns, FetchLoop } from './fetch-loop.js';

class SteppedClock extends Clock {
  ms = 1_000_000;

  override now(): Date {
    return new Date(this.ms);
  }

  override monotonicMs(): number {
    return this.ms;
  }
}

class EvenRandom extends Random {
  override fraction(): number {
    return 0.5;
  }
}

interface Row extends FetchColumns {
  id: number;
  dueMs: number;
  stored: string[];
}

type FetchWork = ConstructorParameters<typeof FetchLoop<Row, string>>[0];

/** Rows in memory, and a platform that answers as a test says. */
class Rows implements FetchWork {
  readonly name = 'rows';
  readonly table = { name: 'rows', columns: '*', key: 'id', lanes: [], effectMs: 0 };
  readonly counter = { name: 'fetches', help: '' };
  readonly rows: Row[];
  readonly wakes: number[] = [];
  configured = true;
  concurrency = 0;
  hasFreshHeartbeat = () => true;
  storing = (): void => {};

  constructor(
    private readonly clock: SteppedClock,
    count: number,
    private readonly platform: (row: Row) => string | Promise<string>,
  ) {
    this.rows = Array.from({ length: count }, (_, id) => ({
      id,
      dueMs: clock.ms,
      failures: 0,
      fault: null,
      refusedAt: null,
      dueAt: null,
      stored: [],
    }));
  }

  isConfigured = () => this.configured;
  fetch = async (row: Row) => this.platform(row);
  storeAnswer = async (_tx: unknown, { row }: { row: Row }, answer: string) => {
    this.storing();
    return { set: 'answer', values: [answer], afterCommit: () => void row.stored.push(answer) };
  };
  storeNotFound = (_fetched: unknown, waitMs: number) => ({ set: 'not found', values: ['gone', 1, waitMs] });

  /** Replaces the table. */
  readonly due = {
    claim: async (): Promise<Leased<Row> | undefined> => {
      const row = this.rows
        .filter(({ dueMs }) => dueMs <= this.clock.ms)
        .sort((left, right) => left.dueMs - right.dueMs)[0];
      if (!row) return undefined;
      row.dueMs = Number.POSITIVE_INFINITY;
      return { row, lease: { key: String(row.id), owner: 'here', no: 1 } };
    },
    done: () => undefined,
    nextDue: () => null,
    lock: async (_tx: unknown, { key }: { key: string }) => ({ ...this.row(key), now: this.clock.now() }),
    settle: async (_tx: unknown, { key }: { key: string }, outcome: { set: string; values: readonly unknown[] }) => {
      const row = this.row(key);
      const isAnswer = outcome.set.startsWith('answer');
      const [code, failures, waitMs, isRefusal] = outcome.values as [string, number, number, boolean?];
      if (isRefusal && (code !== 'maybe-gone' || row.fault !== code)) row.refusedAt = this.clock.now();
      row.fault = isAnswer ? null : code;
      row.failures = isAnswer ? 0 : row.failures + failures;
      if (!isAnswer) row.dueMs = this.clock.ms + waitMs;
      return true;
    },
  };

  private row(key: string): Row {
    return this.rows[Number(key)] as Row;
  }
}

describe('the fetch loop', () => {
  let clock: SteppedClock;
  let calls: number[];

  beforeAll(() => Logger.overrideLogger(false));
  beforeEach(() => {
    clock = new SteppedClock();
    calls = [];
  });

  function setUp(count: number, platform: (row: Row) => string | Promise<string>) {
    const rows = new Rows(clock, count, (row) => {
      calls.push(row.id);
      return platform(row);
    });
    const deps = {
      database: { pool: undefined, transaction: (work: (tx: unknown) => unknown) => work(undefined) },
      worker: { hasFreshHeartbeat: () => rows.hasFreshHeartbeat() },
      clock,
      random: new EvenRandom(),
      metrics: { counter: () => ({ inc: () => undefined }) },
      poller: { wakeIn: () => rows.wakes.push(clock.ms) },
    };
    return { rows, loop: new FetchLoop<Row, string>(rows, deps as unknown as DueLoopDeps, rows.due) };
  }

  const answer = 'new';
  const fails = (...facts: [PlatformError['kind'], ConstructorParameters<typeof PlatformError>[2]?]): never => {
    const [kind, more] = facts;
    throw new PlatformError(kind, 'getSession', more);
  };
  const refused = () => fails('unauthorized');

  test('fetches each due row once', async () => {
    const { rows, loop } = setUp(5, () => answer);
    await loop.run();
    expect(rows.rows.map(({ stored }) => stored)).toEqual(Array(5).fill(['new']));
  });

  test('claims nothing while the contract does not define the call', async () => {
    const { rows, loop } = setUp(2, () => answer);
    rows.configured = false;
    rows.concurrency = 1;
    await loop.run();
    loop.trigger();
    await loop.finished();
    expect(calls).toEqual([]);
  });

  test('a rejected key pauses all fetches without counting for a row, until a probe succeeds', async () => {
    let fixed = false;
    const { rows, loop } = setUp(6, () => (fixed ? answer : refused()));
    await loop.run();
    await loop.run();
    expect(calls).toHaveLength(1);
    clock.ms += 2_500;
    await loop.run();
    expect(calls).toHaveLength(2);
    // Another row than the one that was refused first.
    expect(calls[1]).not.toBe(calls[0]);
    fixed = true;
    clock.ms += 60_000;
    await loop.run();
    expect(rows.rows.every(({ stored, failures }) => stored.length === 1 && failures === 0)).toBe(true);
  });

  test('a 403 for only one row counts for that row, and delays no other', async () => {
    const { rows, loop } = setUp(4, (row) => (row.id === 0 ? refused() : answer));
    for (let round = 0; round < 6; round += 1) {
      await loop.run();
      clock.ms += 10_000;
    }
    expect(rows.rows.slice(1).every(({ stored }) => stored.length === 1)).toBe(true);
    expect(rows.rows[0]?.failures).toBeGreaterThan(0);
  });

  test('pauses after a 429 for as long as the platform asks', async () => {
    let limited = true;
    const { loop } = setUp(3, () => (limited ? fails('rate-limited', { retryAfterMs: 30_000 }) : answer));
    await loop.run();
    clock.ms += 29_000;
    limited = false;
    await loop.run();
    expect(calls).toHaveLength(1);
    clock.ms += 1_000;
    await loop.run();
    expect(calls).toHaveLength(4);
  });

  test('a fault of one row increases its backoff, and delays no other', async () => {
    const { rows, loop } = setUp(2, (row) => (row.id === 0 ? fails('unknown-outcome') : answer));
    await loop.run();
    const first = (rows.rows[0]?.dueMs ?? 0) - clock.ms;
    clock.ms += first;
    await loop.run();
    expect((rows.rows[0]?.dueMs ?? 0) - clock.ms).toBe(first * 2);
    expect(rows.rows[1]?.stored).toEqual(['new']);
  });

  describe('a server that may not be the platform', () => {
    const notFound = () => fails('not-found', { status: 404 });
    const ELSEWHERE: [string, () => never][] = [
      ['a redirect', () => fails('rejected', { status: 302, isWrongAddress: true })],
      ['a page with 200', () => fails('unknown-outcome', { status: 200, isWrongAddress: true })],
      ['a page with 404', () => fails('not-found', { status: 404, isWrongAddress: true })],
    ];

    test.each(ELSEWHERE)(
      '%s pauses all fetches and settles nothing, until a probe succeeds',
      async (_what, elsewhere) => {
        let fixed = false;
        const { rows, loop } = setUp(4, () => (fixed ? answer : elsewhere()));
        for (let round = 0; round < 10; round += 1) {
          await loop.run();
          clock.ms += 60_000;
        }
        expect(calls.length).toBeLessThanOrEqual(10);
        expect(rows.rows.every(({ failures, fault }) => failures === 0 && fault !== 'gone')).toBe(true);
        fixed = true;
        for (let round = 0; round < 2; round += 1) {
          clock.ms += 300_000;
          await loop.run();
        }
        expect(rows.rows.every(({ stored }) => stored.length === 1)).toBe(true);
      },
    );

    test('a redirect for only one row counts for that row, and delays no other', async () => {
      const { rows, loop } = setUp(3, (row) => (row.id === 0 ? fails('rejected', { isWrongAddress: true }) : answer));
      for (let round = 0; round < 6; round += 1) {
        await loop.run();
        clock.ms += 10_000;
      }
      expect(rows.rows.map(({ stored, failures }) => [stored.length, failures > 0])).toEqual([
        [0, true],
        [1, false],
        [1, false],
      ]);
    });

    test('a 404 to every fetch never makes a row gone', async () => {
      const { rows, loop } = setUp(3, notFound);
      for (let round = 0; round < 100; round += 1) {
        await loop.run();
        clock.ms += 900_000;
      }
      expect(rows.rows.map(({ fault }) => fault)).toEqual(Array(3).fill('maybe-gone'));
      // Soon after the URL is right, every row is fetched.
      expect(Math.max(...rows.rows.map(({ dueMs }) => dueMs - clock.ms))).toBeLessThanOrEqual(900_000);
    });

    test.each<[string, () => never]>([['a 404', notFound], ...ELSEWHERE.slice(2)])(
      '%s makes its row gone once another row was fetched after the first one',
      async (_what, elsewhere) => {
        const { rows, loop } = setUp(2, (row) => (row.id === 0 ? elsewhere() : answer));
        (rows.rows[1] as Row).dueMs += 60_000;
        await loop.run();
        clock.ms += 10_000;
        await loop.run();
        expect(rows.rows[0]).not.toMatchObject({ fault: 'gone' });
        clock.ms += 60_000;
        await loop.run();
        clock.ms += 600_000;
        await loop.run();
        expect(rows.rows[0]).toMatchObject({ fault: 'gone' });
      },
    );

    test('a row that is gone stays gone for a process that has fetched nothing yet', async () => {
      const { rows, loop } = setUp(1, notFound);
      Object.assign(rows.rows[0] as Row, { fault: 'gone', refusedAt: new Date(0) });
      await loop.run();
      expect(rows.rows[0]).toMatchObject({ fault: 'gone' });
    });

    test('a 404 from before the start of the process proves nothing', async () => {
      const { rows, loop } = setUp(1, notFound);
      Object.assign(rows.rows[0] as Row, { fault: 'maybe-gone', refusedAt: new Date(-5_000) });
      await loop.run();
      expect(rows.rows[0]).toMatchObject({ fault: 'maybe-gone', refusedAt: new Date(-5_000) });
    });

    test('a 403 is not about one row because of its earlier 404', async () => {
      let isRefused = false;
      const { rows, loop } = setUp(2, (row) => (row.id === 1 ? answer : isRefused ? refused() : notFound()));
      const [row, other] = rows.rows as [Row, Row];
      other.dueMs += 5_000;
      await loop.run();
      clock.ms += 5_000;
      await loop.run();
      expect(row).toMatchObject({ fault: 'maybe-gone', failures: 2 });
      isRefused = true;
      clock.ms += 10_000;
      await loop.run();
      expect(row).toMatchObject({ fault: 'platform-unauthorized', failures: 2 });
    });
  });

  test('fetches a row that is gone again, within a minute at first, and finally once a day', async () => {
    const { rows, loop } = setUp(1, () => fails('not-found'));
    (rows.rows[0] as Row).fault = 'gone';
    const waits: number[] = [];
    for (let time = 0; time < 20; time += 1) {
      await loop.run();
      waits.push((rows.rows[0]?.dueMs ?? 0) - clock.ms);
      clock.ms += waits.at(-1) ?? 0;
    }
    expect(waits.slice(0, 4)).toEqual([4_000, 8_000, 16_000, 32_000]);
    expect(waits.at(-1)).toBe(24 * 3_600_000);
  });

  test('fetches rows concurrently; one that hangs blocks only its own slot', async () => {
    const hanging: (() => void)[] = [];
    const { rows, loop } = setUp(6, ({ id }) =>
      id > 0 ? answer : new Promise((resolve) => hanging.push(() => resolve(answer))),
    );
    rows.concurrency = 2;
    loop.trigger();
    while (rows.rows.some(({ id, stored }) => id > 0 && stored.length === 0)) await Promise.resolve();
    expect(rows.rows[0]?.stored).toEqual([]);
    for (const answered of hanging) answered();
    await loop.finished();
    expect(rows.rows[0]?.stored).toEqual(['new']);
  });

  test('looks again after a trigger that came while every slot was busy', async () => {
    const { rows, loop } = setUp(2, () => answer);
    rows.concurrency = 1;
    for (const row of rows.rows) row.dueMs += 1_000;
    loop.trigger();
    loop.trigger();
    clock.ms += 1_000;
    await loop.finished();
    expect(rows.rows.map(({ stored }) => stored)).toEqual([['new'], ['new']]);
  });

  test('a process without a heartbeat claims nothing, and starts no call for a claimed row', async () => {
    const { rows, loop } = setUp(1, () => answer);
    rows.hasFreshHeartbeat = () => false;
    await loop.run();
    expect(rows.rows[0]?.dueMs).toBe(clock.ms);
    let asked = 0;
    rows.hasFreshHeartbeat = () => ++asked === 1; // it stalls just after its claim
    await loop.run();
    expect([calls, rows.rows[0]?.dueMs]).toEqual([[], clock.ms]);
  });

  test('delays the next fetch after an answer that cannot be stored', async () => {
    const { rows, loop } = setUp(1, () => answer);
    rows.storing = () => {
      throw new Error('the value is not storable');
    };
    await loop.run();
    expect(calls).toHaveLength(1);
    expect(rows.rows[0]).toMatchObject({ failures: 1 });
  });

  test('the end of a slot wakes the poller, which finds the next due time', async () => {
    const { rows, loop } = setUp(1, () => answer);
    rows.concurrency = 1;
    loop.trigger();
    await loop.finished();
    expect(rows.rows[0]?.stored).toEqual(['new']);
    expect(rows.wakes).toContain(clock.ms);
  });

  test('shutdown leaves the row of a fetch in flight due immediately', async () => {
    const { rows, loop } = setUp(2, () => {
      loop.stop();
      return fails('unknown-outcome');
    });
    await loop.run();
    expect(calls).toHaveLength(1);
    expect(rows.rows[0]).toMatchObject({ dueMs: clock.ms, failures: 0 });
  });
});
