import type { Contract } from './contract.js';
import type { ContractWorker, ContractWorkerOptions } from './store.js';

/** Longer than any test. */
const LONG_MS = 60_000;

/** How long a test watches that nothing starts. */
const QUIET_MS = 300;

const LIMITER = { max: 2, duration: LONG_MS };

/** How many jobs run at once, and how many in a time. */
export function describeLimits(contract: Contract): void {
  const addRows = async (count: number) => {
    for (let index = 0; index < count; index += 1) await contract.add(`row-${index}`);
  };
  /** Two workers, as in two processes. */
  const workTwice = (options: ContractWorkerOptions = {}): ContractWorker[] => [
    contract.work(options),
    contract.work(options),
  ];
  /** As the product does, because a decorator does not know the settings. */
  const workWithSettings = (limiter: ContractWorkerOptions['limiter'], concurrency = 4) => {
    for (const worker of workTwice({ autorun: false })) {
      if (limiter) worker.opts.limiter = limiter;
      worker.concurrency = concurrency;
      void worker.run();
    }
  };
  const untilStarted = async (count: number) => {
    await contract.untilRun(count);
    await contract.store.advance(QUIET_MS);
    expect(contract.runs).toHaveLength(count);
  };

  describe('a limiter that is set before run()', () => {
    it('holds over two workers', async () => {
      await addRows(6);
      workWithSettings(LIMITER);
      await untilStarted(2);
    });

    it('is missed if it is not set', async () => {
      await addRows(6);
      workWithSettings(undefined);
      await contract.untilRun(6);
    });

    it('lets the next jobs through after each window', async () => {
      await addRows(6);
      const beganMs = contract.store.nowMs();
      workWithSettings({ max: 2, duration: 200 });
      await contract.untilRun(6);
      expect((contract.runs[5]?.atMs ?? 0) - beganMs).toBeGreaterThanOrEqual(395);
    });

    it('starts its window at the first job, not at a fixed time', async () => {
      workWithSettings({ max: 2, duration: 400 });
      await contract.add('first');
      await contract.untilRun(1);
      await contract.store.advance(200);
      await addRows(3);
      await contract.untilRun(4);
      const [first, , third] = contract.runs;
      expect((third?.atMs ?? 0) - (first?.atMs ?? 0)).toBeGreaterThan(200);
    });
  });

  describe('a concurrency that is set before run()', () => {
    it.each([2, 3])('%i holds for each worker', async (concurrency) => {
      contract.hold();
      await addRows(8);
      workWithSettings(undefined, concurrency);
      await untilStarted(2 * concurrency);
    });
  });

  describe('the global concurrency', () => {
    it('holds over two workers, which work on the rest as jobs end', async () => {
      contract.hold();
      await contract.queue.setGlobalConcurrency(3);
      expect(await contract.queue.getGlobalConcurrency()).toBe(3);
      await addRows(8);
      workWithSettings(undefined);
      await untilStarted(3);
      contract.open();
      await contract.untilRun(8);
      expect(contract.mostActive).toBe(3);
    });

    it('lets a worker without a job rest while jobs wait', async () => {
      contract.hold();
      await contract.queue.setGlobalConcurrency(1);
      await addRows(2);
      workWithSettings(undefined);
      await contract.untilRun(1);
      const before = await contract.store.commands?.();
      await contract.store.advance(1_000);
      const commands = ((await contract.store.commands?.()) ?? 0) - (before ?? 0);
      expect(commands).toBeLessThan(150);
    });

    it('is unlimited if it is not set', async () => {
      contract.hold();
      expect(await contract.queue.getGlobalConcurrency()).toBeNull();
      await addRows(8);
      workWithSettings(undefined);
      await contract.untilRun(8);
    });
  });

  describe('rateLimit', () => {
    it('pauses all workers that have a limiter', async () => {
      await contract.queue.rateLimit(LONG_MS);
      await addRows(2);
      workWithSettings({ max: 100, duration: 1_000 });
      await untilStarted(0);
    });

    it('does not pause a worker without a limiter', async () => {
      await contract.queue.rateLimit(LONG_MS);
      await addRows(2);
      workWithSettings(undefined);
      await contract.untilRun(2);
    });

    it('replaces a longer pause by a shorter one', async () => {
      await contract.queue.rateLimit(LONG_MS);
      await contract.queue.rateLimit(200);
      await addRows(2);
      workWithSettings({ max: 100, duration: 1_000 });
      await contract.untilRun(2);
    });

    it('does not wake a worker that knows the longer pause', async () => {
      const limiter = { max: 100, duration: 1_000 };
      contract.work({ limiter });
      await contract.add('before');
      await contract.untilRun(1);
      await contract.untilIdle(); // the end of a job fetches the next one
      await contract.queue.rateLimit(LONG_MS);
      await contract.add('a');
      await untilStarted(1);
      await contract.queue.rateLimit(100);
      await contract.store.advance(500);
      expect(contract.runs).toHaveLength(1);
      contract.work({ limiter });
      await contract.untilRun(2);
    });
  });
}
