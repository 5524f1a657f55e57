import { canary } from '../../../harness/canaries.js';
import { optionsOf } from '../../../src/queue/work/work-queue.js';
import type { Contract } from './contract.js';
import type { ContractOptions } from './store.js';

/** Above the timeout of an add, for a busy machine. */
const SETTLES_MS = 20_000;

/** Longer than the connection of a producer lets a command take. */
const ABOVE_ADD_TIMEOUT_MS = 1_800;

const ALL_STATES = ['waiting', 'prioritized', 'active', 'delayed', 'completed', 'failed'] as const;
const KEPT: ContractOptions = { removeOnComplete: false, removeOnFail: false };

/** Wipes, schedulers, ends of jobs and workers, and a store that is unavailable. */
export function describeLifetime(contract: Contract): void {
  const every = (ms: number) => contract.queue.upsertJobScheduler('seals', { every: ms }, TEMPLATE);

  describe('a wiped store', () => {
    it('forgets waiting jobs, the global concurrency and schedulers', async () => {
      await contract.add('a');
      await contract.queue.setGlobalConcurrency(3);
      await every(60_000);
      await contract.store.wipe();
      expect(await contract.queue.getJobs([...ALL_STATES])).toEqual([]);
      expect(await contract.queue.getGlobalConcurrency()).toBeNull();
      expect(await contract.queue.getJobSchedulers()).toEqual([]);
    });

    it('is used again by the workers that were open, and by adds and schedulers', async () => {
      contract.work();
      await contract.add('before');
      await contract.untilRun(1);
      await contract.store.wipe();
      await contract.add('after');
      await contract.untilRun(2);
      await every(60_000);
      await contract.untilRun(3);
      expect(contract.ranIds).toEqual(['before', 'after', 'seal']);
    });

    it('forgets the pause of rateLimit', async () => {
      await contract.queue.rateLimit(60_000);
      await contract.store.wipe();
      await contract.add('a');
      contract.work({ limiter: { max: 100, duration: 1_000 } });
      await contract.untilRun(1);
    });

    it('forgets active jobs, so that a row can run twice at once', async () => {
      contract.hold();
      contract.work({ concurrency: 2 });
      await contract.add('a');
      await contract.untilRun(1);
      await contract.store.wipe();
      await contract.add('a');
      await contract.untilRun(2);
      expect(contract.overlaps).toBe(1);
      contract.open();
      await contract.untilIdle();
      await contract.add('a');
      await contract.untilRun(3);
    });
  });

  describe('a scheduler', () => {
    it('runs its job at once, and again and again', async () => {
      contract.work();
      await every(100);
      await contract.untilRun(4);
    });

    it('has one job, however often it is upserted', async () => {
      for (let times = 0; times < 5; times += 1) await every(60_000);
      expect(await contract.queue.getJobSchedulers()).toMatchObject([{ key: 'seals', every: 60_000 }]);
      expect(await contract.rows()).toEqual(['seal']);
    });

    it('runs in time while each round of the feeder upserts it', async () => {
      contract.work();
      for (let rounds = 0; rounds < 100 && contract.runs.length < 4; rounds += 1) {
        await every(100);
        await contract.store.advance(50);
      }
      expect(contract.runs.length).toBeGreaterThanOrEqual(4);
    });

    it('does not run again at once when it is upserted after its run', async () => {
      contract.work();
      await every(60_000);
      await contract.untilRun(1);
      await contract.store.until(async () => contract.active.length === 0);
      await every(60_000);
      await contract.store.advance(300);
      expect(contract.runs).toHaveLength(1);
    });
  });

  describe('a job that has ended', () => {
    const fail = () => {
      throw new Error('expected');
    };

    it.each([
      ['completed', undefined],
      ['failed', fail],
    ])('leaves nothing behind if it %s', async (_, work) => {
      contract.work({}, work);
      await contract.add('a');
      await contract.untilRun(1);
      await contract.untilIdle();
      expect(await contract.rows()).toEqual([]);
    });

    it.each([
      ['completed', undefined],
      ['failed', fail],
    ] as const)('stays as %s without removeOnComplete and removeOnFail', async (state, work) => {
      contract.work({}, work);
      await contract.add('a', 0, KEPT);
      await contract.store.until(async () => (await contract.queue.getJobs([state])).length === 1);
    });

    it('does not block its row, even if it failed', async () => {
      contract.work({}, fail);
      for (let count = 1; count <= 3; count += 1) {
        await contract.add('a');
        await contract.untilRun(count);
        await contract.untilIdle();
      }
    });

    it('is followed by the run for which its row was added, even if it failed', async () => {
      contract.hold();
      contract.work({}, () =>
        contract.runs.length === 1 ? contract.store.until(() => isAdded).then(fail) : undefined,
      );
      let isAdded = false;
      await contract.add('a');
      await contract.untilRun(1);
      await contract.add('a', 'again');
      isAdded = true;
      contract.open();
      await contract.untilRun(2);
      expect(contract.runs[1]?.change).toBe('again');
    });

    it('leaves the message of its error in the events of a real store, so processors must not throw it', async () => {
      const message = canary('Person');
      contract.work({}, () => {
        throw new Error(message);
      });
      await contract.add('a');
      await contract.untilRun(1);
      await contract.untilIdle();
      const dump = await contract.store.dump?.();
      expect(dump?.includes(message) ?? true).toBe(true);
    });
  });

  describe('close()', () => {
    it('waits for the job in progress, and takes no other', async () => {
      contract.hold();
      const worker = contract.work();
      for (const id of ['a', 'b']) await contract.add(id);
      await contract.untilRun(1);
      let isClosed = false;
      const closed = worker.close().then(() => {
        isClosed = true;
      });
      await contract.store.advance(300);
      expect(isClosed).toBe(false);
      contract.open();
      await contract.store.until(() => isClosed);
      await closed;
      expect(contract.ranIds).toEqual(['a']);
      expect(await contract.rows()).toEqual(['b']);
    });

    it('lets a job in progress add rows, its own and others', async () => {
      let isClosing = false;
      const worker = contract.work({}, async () => {
        await contract.waitInside(() => isClosing);
        await contract.add('a', 'inner');
        await contract.add('b');
      });
      await contract.add('a');
      await contract.untilRun(1);
      const closed = worker.close();
      await contract.store.advance(50);
      isClosing = true;
      await contract.store.until(() => contract.active.length === 0);
      await closed;
      expect((await contract.rows()).sort()).toEqual(['a', 'b']);
    });
  });

  it('an add of a producer that has never reached its store ends only if the caller bounds it', async () => {
    const added = contract.store.unreachableQueue(contract.name).add('row', { id: 'a' });
    const ended = added.then(
      () => 'added',
      () => 'rejected',
    );
    const hangs = new Promise((resolve) => setTimeout(resolve, ABOVE_ADD_TIMEOUT_MS, 'hangs'));
    expect(await Promise.race([ended, hangs])).toBe(contract.store.unreachableAdd);
  });

  it('an add without a store rejects soon, and one after its return succeeds', async () => {
    await contract.add('before');
    await contract.store.setAway(true);
    try {
      const added = contract.queue.add('row', { id: 'a' }, optionsOf('a')).then(
        () => 'added',
        () => 'rejected',
      );
      const hangs = new Promise((resolve) => setTimeout(resolve, SETTLES_MS, 'hangs').unref());
      expect(await Promise.race([added, hangs])).toBe('rejected');
    } finally {
      await contract.store.setAway(false);
    }
    await contract.store.until(() =>
      contract.add('after').then(
        () => true,
        () => false,
      ),
    );
  });
}

const TEMPLATE = { name: 'row', data: { id: 'seal' }, opts: { removeOnComplete: true, removeOnFail: true } };
