import { within } from './within.js';

describe('work within a time', () => {
  beforeEach(() => jest.useFakeTimers());
  afterEach(() => jest.useRealTimers());

  test('gives its result, and leaves no timer', async () => {
    await expect(within(100, Promise.resolve('done'), () => 'late')).resolves.toBe('done');
    expect(jest.getTimerCount()).toBe(0);
  });

  test('fails as it fails', async () => {
    await expect(within(100, Promise.reject(new Error('no')), () => 'late')).rejects.toThrow('no');
    expect(jest.getTimerCount()).toBe(0);
  });

  test('is late after that time and not before, whatever becomes of it then', async () => {
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
    fail(new Error('nobody waits any more'));
    await jest.advanceTimersByTimeAsync(1);
  });

  test('may fail for being late', async () => {
    const work = within(100, new Promise<never>(() => undefined), () => {
      throw new Error('too late');
    });
    const failing = expect(work).rejects.toThrow('too late');
    await jest.advanceTimersByTimeAsync(100);
    await failing;
  });
});
