import { within } from './within.js';

describe('work with a time limit', () => {
  beforeEach(() => jest.useFakeTimers());
  afterEach(() => jest.useRealTimers());

  test('resolves to its result, and leaves no timer', async () => {
    await expect(within(100, Promise.resolve('done'), () => 'late')).resolves.toBe('done');
    expect(jest.getTimerCount()).toBe(0);
  });

  test('rejects with its error', async () => {
    await expect(within(100, Promise.reject(new Error('no')), () => 'late')).rejects.toThrow('no');
    expect(jest.getTimerCount()).toBe(0);
  });

  test('resolves to the late value only after the limit, even if the work fails later', async () => {
    let fail: (error: Error) => void = () => undefined;
    const work = new Promise<string>((_resolve, reject) => {
      fail = reject;
    });
    const seen: string[] = [];
    void within(100, work, () => 'late').then((outcome) => seen.push(outcome));
    await jest.advanceTimersByTimeAsync(99);
    expect(seen).toEqual([]);
    await jest.advanceTimersByTimeAsync(1);
    expect(seen).toEqual(['late']);
    fail(new Error('too late to matter'));
    await jest.advanceTimersByTimeAsync(1);
  });

  test('rejects if the late function throws', async () => {
    const work = within(100, new Promise<never>(() => undefined), () => {
      throw new Error('too late');
    });
    const failing = expect(work).rejects.toThrow('too late');
    await jest.advanceTimersByTimeAsync(100);
    await failing;
  });
});
