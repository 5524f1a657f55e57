import fc from 'fast-check';
import { propertyRuns } from '../config/property-runs.spec-support.js';
import { GroupCommit } from './group-commit.js';

type GroupCommitLimits = ConstructorParameters<typeof GroupCommit>[0];

const LIMITS: GroupCommitLimits = {
  inFlight: 2,
  batch: { rows: 4, bytes: 100 },
  waiting: { rows: 6, bytes: 1_000 },
  deadlineMs: 1_800,
};

class Unavailable extends Error {}

/** Commits that a test ends explicitly. */
function scripted(limits: Partial<GroupCommitLimits> = {}) {
  const calls: { rows: readonly string[]; done: () => void; fail: (error?: Error) => void }[] = [];
  const time = { now: 0 };
  const group = new GroupCommit<string>(
    { ...LIMITS, ...limits },
    {
      commit: (rows) =>
        new Promise((resolve, reject) => {
          calls.push({ rows, done: resolve, fail: (error = new Error('constraint')) => reject(error) });
        }),
      isUnavailable: (error) => error instanceof Unavailable,
      now: () => time.now,
    },
  );
  const add = (row: string, bytes = 1) =>
    group.add(row, bytes).then(
      () => 'kept',
      (error: { reason: string }) => error.reason,
    );
  return { group, calls, time, add, rows: () => calls.map((call) => call.rows.join('')) };
}

const turn = () => new Promise((resolve) => setImmediate(resolve));

test('commits the rows of one turn immediately while a slot is free, and later ones together', async () => {
  const { calls, add, rows } = scripted();
  const kept = [add('a'), add('b')];
  await turn();
  kept.push(add('c'));
  await turn();
  kept.push(add('d'));
  await turn();
  kept.push(add('e'));
  await turn();
  expect(rows()).toEqual(['ab', 'c']);
  calls[0]?.done();
  await turn();
  expect(rows()).toEqual(['ab', 'c', 'de']);
  for (const call of calls) call.done();
  expect(await Promise.all(kept)).toEqual(Array(5).fill('kept'));
});

test('limits the rows and bytes of a commit; a larger row is committed individually', async () => {
  const { calls, add, rows } = scripted({ inFlight: 1, waiting: { rows: 100, bytes: 1_000 } });
  const kept = [...'abcdef'].map((row) => add(row)).concat(add('G', 300), add('h', 60), add('i', 60));
  for (let i = 0; i < 6; i += 1) {
    await turn();
    calls.at(-1)?.done();
  }
  expect(rows()).toEqual(['abcd', 'ef', 'G', 'h', 'i']);
  expect(await Promise.all(kept)).toEqual(Array(9).fill('kept'));
});

test('limits the rows and bytes that wait, and rejects others immediately', async () => {
  const { calls, add } = scripted({ inFlight: 1 });
  const first = add('a');
  await turn();
  const waiting = ['b', 'c', 'd', 'e', 'f', 'g'].map((row) => add(row));
  expect(await add('h')).toBe('full');
  calls[0]?.done();
  await turn();
  expect(await add('X', 1_000)).toBe('full');
  calls[1]?.done();
  await turn();
  calls[2]?.done();
  expect(await Promise.all([first, ...waiting])).toEqual(Array(7).fill('kept'));
});

test('retries a failed group once, row by row, and rejects only the faulty row', async () => {
  const { calls, add } = scripted({ inFlight: 1 });
  const first = add('a');
  await turn();
  const rest = ['b', 'X', 'c'].map((row) => add(row));
  calls[0]?.done();
  await turn();
  calls[1]?.fail();
  for (const index of [2, 3, 4]) {
    await turn();
    if (calls[index]?.rows[0] === 'X') calls[index]?.fail();
    else calls[index]?.done();
  }
  expect(await Promise.all([first, ...rest])).toEqual(['kept', 'kept', 'database', 'kept']);
  expect(calls.map((call) => call.rows.length)).toEqual([1, 3, 1, 1, 1]);
});

test('tries a group only once while the database is unavailable', async () => {
  const { calls, add } = scripted({ inFlight: 1 });
  const first = add('a');
  await turn();
  const rest = ['b', 'c', 'd'].map((row) => add(row));
  calls[0]?.done();
  await turn();
  calls[1]?.fail(new Unavailable());
  await turn();
  calls[2]?.fail(new Unavailable());
  expect(await Promise.all([first, ...rest])).toEqual(['kept', 'database', 'database', 'database']);
  expect(calls).toHaveLength(3);
});

test('rejects a row at its deadline, even while its commit is in progress', async () => {
  const { group, calls, time, add } = scripted({ inFlight: 1 });
  const stuck = add('a');
  await turn();
  const waiting = add('b');
  time.now = 1_000;
  const later = add('c');
  time.now = 1_900;
  expect(await Promise.all([stuck, waiting])).toEqual(['late', 'late']);
  calls[0]?.done();
  await turn();
  calls[1]?.done();
  expect(await later).toBe('kept');
  expect(calls[1]?.rows).toEqual(['c']);
  expect(group.load).toEqual({ waiting: 0, inFlight: 0 });
});

test('no timer runs without rows', async () => {
  jest.useFakeTimers({ doNotFake: ['setImmediate'] });
  try {
    const { group, calls, add } = scripted();
    expect(jest.getTimerCount()).toBe(0);
    const kept = add('a');
    await turn();
    expect(jest.getTimerCount()).toBe(1);
    calls[0]?.done();
    await kept;
    await turn();
    jest.advanceTimersByTime(50);
    expect([group.load.inFlight, jest.getTimerCount()]).toEqual([0, 0]);
  } finally {
    jest.useRealTimers();
  }
});

test('close rejects new rows and waits for the present ones', async () => {
  const { group, calls, add } = scripted();
  const kept = add('a');
  await turn();
  const closed = group.close();
  expect(await add('b')).toBe('closing');
  calls[0]?.done();
  await closed;
  expect(await kept).toBe('kept');
});

test('accepts a row exactly if a commit with it succeeded in time', async () => {
  const plan = fc.array(fc.record({ fails: fc.boolean(), unavailable: fc.boolean() }), { minLength: 1, maxLength: 30 });
  await fc.assert(
    fc.asyncProperty(plan, fc.integer({ min: 1, max: 20 }), async (outcomes, count) => {
      const committed = new Set<string>();
      let call = 0;
      const group = new GroupCommit<string>(
        { ...LIMITS, waiting: { rows: 100, bytes: 1_000 } },
        {
          commit: async (rows) => {
            const outcome = outcomes[call++ % outcomes.length];
            await turn();
            if (outcome?.fails) throw outcome.unavailable ? new Unavailable() : new Error();
            for (const row of rows) committed.add(row);
          },
          isUnavailable: (error) => error instanceof Unavailable,
          now: () => 0,
        },
      );
      const rows = Array.from({ length: count }, (_, index) => String(index));
      const answers = await Promise.all(
        rows.map((row) =>
          group.add(row, 1).then(
            () => true,
            () => false,
          ),
        ),
      );
      expect(answers).toEqual(rows.map((row) => committed.has(row)));
      expect(group.load).toEqual({ waiting: 0, inFlight: 0 });
    }),
    propertyRuns(0.2),
  );
});
