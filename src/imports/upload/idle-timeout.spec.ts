import { STALLED_MS, signsOfLife } from './idle-timeout.js';

beforeEach(() => jest.useFakeTimers());
afterEach(() => jest.useRealTimers());

/** Chunks that come after pauses of so many milliseconds. */
async function* sender(pausesMs: number[]): AsyncGenerator<Buffer> {
  for (const pause of pausesMs) {
    await new Promise((resolve) => setTimeout(resolve, pause));
    yield Buffer.from(String(pause));
  }
}

async function collected(source: AsyncIterable<Buffer>, into: string[]): Promise<void> {
  for await (const chunk of source) into.push(chunk.toString());
}

test('chunks pass as they come, however long they take together', async () => {
  const chunks: string[] = [];
  const pauses = [0, 1, STALLED_MS - 1, STALLED_MS - 1];
  const reading = collected(signsOfLife(sender(pauses)), chunks);
  for (const [at, pause] of pauses.entries()) {
    await jest.advanceTimersByTimeAsync(pause);
    expect(chunks.length).toBe(at + 1);
  }
  await reading;
  expect(chunks).toEqual(pauses.map(String));
  expect(jest.getTimerCount()).toBe(0);
});

test('a sender that falls silent for half a minute is given up, and told so', async () => {
  const chunks: string[] = [];
  const told: unknown[] = [];
  const silent = sender([0, 10 * STALLED_MS]);
  void collected(signsOfLife(silent), chunks).catch((problem: unknown) => told.push(problem));
  await jest.advanceTimersByTimeAsync(29_999);
  expect([chunks, told]).toEqual([['0'], []]);
  await jest.advanceTimersByTimeAsync(1);
  expect(told).toMatchObject([{ status: 408, type: 'upload-stalled' }]);
});
