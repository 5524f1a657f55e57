import { pollUntil } from './poll-until.js';

type WaitTime = NonNullable<Parameters<typeof pollUntil>[4]>;

const HOUR_MS = 3_600_000;

const never = () => false;

/** Time that passes only in pauses. */
function steppedTime() {
  const pauses: number[] = [];
  let now = 0;
  const time: WaitTime = {
    nowMs: () => {
      if (now > HOUR_MS) throw new Error('It does not end');
      return now;
    },
    pause: async (ms) => {
      pauses.push(ms);
      now += Math.max(ms, 1); // as timers do
    },
  };
  return { time, pauses, now: () => now };
}

function counter() {
  let reads = 0;
  return { read: async () => ++reads, reads: () => reads };
}

test('without a wish to wait the state is read once', async () => {
  const { time, pauses } = steppedTime();
  expect([await pollUntil(0, counter().read, never, undefined, time), pauses]).toEqual([1, []]);
});

test('it ends as soon as the state is settled', async () => {
  const { time, pauses } = steppedTime();
  expect(await pollUntil(30, counter().read, (state) => state === 2, undefined, time)).toBe(2);
  expect(pauses).toEqual([20]);
});

test('when the time is over it answers with the state of that moment', async () => {
  const { time, now } = steppedTime();
  const { read, reads } = counter();
  const last = await pollUntil(0.11, read, never, undefined, time);
  expect([last, reads(), now()]).toEqual([7, 7, 110]);
});

test('it reads at most fifty times a second, and four times a second in a long wait', async () => {
  const { time, pauses, now } = steppedTime();
  await pollUntil(60, counter().read, never, undefined, time);
  expect([Math.min(...pauses.slice(0, -1)), Math.max(...pauses), now()]).toEqual([20, 250, 60_000]);
  expect(pauses.length).toBeLessThan(300);
});

test('it ends when the caller hangs up, also in the middle of a pause', async () => {
  const caller = new AbortController();
  const pause = (_ms: number, signal?: AbortSignal) =>
    new Promise((_resolve, reject) => {
      signal?.addEventListener('abort', () => reject(signal.reason));
      caller.abort();
    });
  const { read, reads } = counter();
  expect(await pollUntil(30, read, never, caller.signal, { nowMs: () => 0, pause })).toBe(2);
  expect(reads()).toBe(2);
});

test("on the machine's own clock too", async () => {
  const caller = new AbortController();
  const read = async () => {
    setImmediate(() => caller.abort());
    return 'open';
  };
  expect(await pollUntil(3_600, read, never, caller.signal)).toBe('open');
});

test('a fault of the reading passes through', async () => {
  await expect(pollUntil(5, () => Promise.reject(new Error('gone')), Boolean)).rejects.toThrow('gone');
});
