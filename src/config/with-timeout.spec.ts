import { withTimeout } from './with-timeout.js';

describe('withTimeout', () => {
  beforeEach(() => jest.useFakeTimers());
  afterEach(() => jest.useRealTimers());

  test('resolves to the result of the work, and leaves no timer', async () => {
    await expect(withTimeout(Promise.resolve('done'), 100, () => 'late')).resolves.toBe('done');
    expect(jest.getTimerCount()).toBe(0);
  });

  test('rejects with the error of the work', async () => {
    await expect(withTimeout(Promise.reject(new Error('no')), 100, () => 'late')).rejects.toThrow('no');
    expect(jest.getTimerCount()).toBe(0);
  });

  test('resolves to the late value only after the timeout, even if the work fails later', async () => {
    let fail: (error: Error) => void = () => undefined;
    const work = new Promise<string>((_resolve, reject) => {
      fail = reject;
    });
    const seen: string[] = [];
    void withTimeout(work, 100, () => 'late').then((outcome) => seen.push(outcome));
    await jest.advanceTimersByTimeAsync(99);
    expect(seen).toEqual([]);
    await jest.advanceTimersByTimeAsync(1);
    expect(seen).toEqual(['late']);
    fail(new Error('too late to matter'));
    await jest.advanceTimersByTimeAsync(1);
  });

  test('rejects if onTimeout throws', async () => {
    const work = withTimeout(new Promise<never>(() => undefined), 100, () => {
      throw new Error('too late');
    });
    const failing = expect(work).rejects.toThrow('too late');
    await jest.advanceTimersByTimeAsync(100);
    await failing;
  });
});
