import { SeededRandom } from '../../../simulator/seeded-random.js';
import { NOT_URGENT, optionsOf } from '../../../src/queue/work/work-queue.js';
import type { Contract } from './contract.js';
import type { ContractOptions } from './store.js';

const WITHOUT_DEDUPLICATION: ContractOptions = { deduplication: undefined };
const withoutKeepLast = (id: string): ContractOptions => ({ deduplication: { id } });

/** Times at which the random adds stop until all work is done. */
const ROUNDS = 10;

/** A job names a row. */
export function describeRows(contract: Contract): void {
  describe('a row that waits', () => {
    it('has one job, with the data and priority of the first add', async () => {
      const first = await contract.add('a', 'first');
      const second = await contract.addUrgent('a', 'second');
      expect(second.id).toBe(first.id);
      const waiting = await contract.queue.getJobs(['waiting', 'prioritized']);
      expect(waiting.map(({ data, priority }) => [data.change, priority])).toEqual([['first', NOT_URGENT]]);
    });

    it('has the priority of the first add, although the second add returns its own', async () => {
      await contract.add('a');
      expect((await contract.addUrgent('a')).priority).toBe(0);
    });

    it('has one job for each add without deduplication', async () => {
      await contract.add('a', 1, WITHOUT_DEDUPLICATION);
      await contract.add('a', 2, WITHOUT_DEDUPLICATION);
      expect(await contract.rows()).toEqual(['a', 'a']);
    });
  });

  describe('five adds of an active row', () => {
    it.each<[string, (id: string) => ContractOptions, unknown[]]>([
      ['become one more run, with the data of the last', optionsOf, ['first', 4]],
      ['are lost without keepLastIfActive', withoutKeepLast, ['first']],
      ['become five more runs without deduplication', () => WITHOUT_DEDUPLICATION, ['first', 0, 1, 2, 3, 4]],
    ])('%s', async (_, options, changes) => {
      contract.hold();
      contract.work();
      await contract.add('a', 'first', options('a'));
      await contract.untilRun(1);
      for (let change = 0; change < 5; change += 1) await contract.add('a', change, options('a'));
      contract.open();
      await contract.untilRun(changes.length);
      await contract.untilIdle();
      expect(contract.runs.map(({ change }) => change)).toEqual(changes);
    });
  });

  describe('an add from inside the processor', () => {
    /** A row that gets an urgent PUT and then, from its processor, an add. @returns the order of the runs */
    const run = async (inner?: (job: unknown) => Promise<unknown>) => {
      contract.hold();
      let isInner = false;
      contract.work({}, async (job) => {
        if (isInner || job.data.id !== 'a') return;
        isInner = true;
        await contract.waitInside(() => isPut);
        await inner?.(job);
      });
      let isPut = false;
      await contract.add('a', 'first');
      await contract.untilRun(1);
      await contract.add('b');
      await contract.addUrgent('a', 'put');
      isPut = true;
      contract.open();
      await contract.untilRun(3);
      return contract.runs.map(({ id, change, priority }) => `${id} ${change} ${priority}`).slice(1);
    };

    it('replaces the add that a PUT left, and with it its urgency', async () => {
      expect(await run(() => contract.add('a', 'inner'))).toEqual(['b 0 10', 'a inner 10']);
    });

    it('must be urgent if the row is, so that the urgency of the PUT is kept', async () => {
      expect(await run(() => contract.addUrgent('a', 'inner'))).toEqual(['a inner 0', 'b 0 10']);
    });

    it('is not needed for the PUT to run', async () => {
      expect(await run()).toEqual(['a put 0', 'b 0 10']);
    });
  });

  it('changePriority after an add of an active row does not reach its next run', async () => {
    contract.hold();
    contract.work();
    const active = await contract.add('a', 'first');
    await contract.untilRun(1);
    const added = await contract.add('a', 'second');
    expect(added.id).toBe(active.id);
    await added.changePriority({ priority: 0 });
    contract.open();
    await contract.untilRun(2);
    expect(contract.runs[1]).toMatchObject({ change: 'second', priority: NOT_URGENT });
  });

  it('changePriority of a job that has ended rejects', async () => {
    contract.work();
    const job = await contract.add('a');
    await contract.untilRun(1);
    await contract.untilIdle();
    await expect(job.changePriority({ priority: 0 })).rejects.toThrow('Missing key for job');
  });

  describe('random adds over two workers', () => {
    /** @returns how often no run saw the last change of a row, and two jobs of a row were active */
    const run = async (adds: number, options: (id: string) => ContractOptions) => {
      const random = new SeededRandom(Number(process.env.SEED));
      // As many as the places of the workers, so that most adds are of active rows.
      const rows = Array.from({ length: 8 }, (_, index) => ({ id: `row-${index}`, change: 0, seen: 0 }));
      const work = async ({ data }: { data: { id: string } }) => {
        const row = rows.find(({ id }) => id === data.id);
        const seen = row?.change ?? 0; // the row is the truth, not the job's data
        await contract.store.sleep(random.fraction() * 6);
        if (row) row.seen = Math.max(row.seen, seen);
      };
      for (let index = 0; index < 2; index += 1) contract.work({ concurrency: 4 }, work);
      const addOne = async () => {
        const row = rows[Math.floor(random.fraction() * rows.length)];
        if (!row) return;
        row.change += 1;
        const priority = random.fraction() < 0.5 ? NOT_URGENT : undefined;
        await contract.add(row.id, row.change, { ...options(row.id), priority });
      };
      let lost = 0;
      for (let round = 0; round < ROUNDS; round += 1) {
        for (let done = 0; done < adds / ROUNDS; done += 10) {
          await Promise.all(Array.from({ length: 10 }, addOne));
          await contract.store.advance(1);
        }
        await contract.untilIdle();
        lost += rows.filter(({ change, seen }) => seen < change).length;
        for (const row of rows) row.seen = row.change;
      }
      return { lost, overlaps: contract.overlaps };
    };

    it('never overlap for a row, and lose no change', async () => {
      expect(await run(contract.store.randomAdds, optionsOf)).toEqual({ lost: 0, overlaps: 0 });
    });

    it('overlap without deduplication', async () => {
      expect((await run(100, () => WITHOUT_DEDUPLICATION)).overlaps).toBeGreaterThan(0);
    });
  });
}
