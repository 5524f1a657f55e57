import { waitUntil } from './wait-until.js';

test('without a wish to wait the state is read once', async () => {
  let reads = 0;
  expect(await waitUntil(0, async () => ++reads, Object.is.bind(null, 99))).toBe(1);
});

test('it ends as soon as the state is settled', async () => {
  let reads = 0;
  const started = performance.now();
  expect(
    await waitUntil(
      30,
      async () => ++reads,
      (state) => state === 2,
    ),
  ).toBe(2);
  expect(performance.now() - started).toBeLessThan(2_000);
});

test('when the time is over it answers with the state of that moment', async () => {
  let reads = 0;
  const started = performance.now();
  const last = await waitUntil(
    0.25,
    async () => ++reads,
    () => false,
  );
  expect(performance.now() - started).toBeGreaterThanOrEqual(249);
  expect(last).toBe(reads);
  expect(reads).toBeGreaterThanOrEqual(3);
});

test('it ends when the caller hangs up', async () => {
  const caller = new AbortController();
  const started = performance.now();
  const reading = waitUntil(
    30,
    async () => 'open',
    () => false,
    caller.signal,
  );
  caller.abort();
  expect(await reading).toBe('open');
  expect(performance.now() - started).toBeLessThan(1_000);
});

test('a fault of the reading passes through', async () => {
  await expect(waitUntil(5, () => Promise.reject(new Error('gone')), Boolean)).rejects.toThrow('gone');
});
