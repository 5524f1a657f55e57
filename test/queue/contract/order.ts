import type { Contract } from './contract.js';

/** Which job a worker takes next. */
export function describeOrder(contract: Contract): void {
  const orderOf = async (count: number) => {
    contract.work();
    await contract.untilRun(count);
    return contract.ranIds;
  };

  it('urgent rows go first, and those of a priority in the order of their adds', async () => {
    for (const id of ['n1', 'n2']) await contract.add(id);
    for (const id of ['u1', 'u2']) await contract.addUrgent(id);
    expect(await orderOf(4)).toEqual(['u1', 'u2', 'n1', 'n2']);
  });

  it('without priorities, an urgent row waits for all others', async () => {
    for (const id of ['n1', 'n2', 'u1']) await contract.addUrgent(id);
    expect(await orderOf(3)).toEqual(['n1', 'n2', 'u1']);
  });

  it('an urgent add of a row that waits moves it in front only with changePriority', async () => {
    for (const id of ['n1', 'n2', 'n3']) await contract.add(id);
    await contract.addUrgent('n2');
    await (await contract.addUrgent('n3')).changePriority({ priority: 0 });
    expect(await orderOf(3)).toEqual(['n3', 'n1', 'n2']);
  });

  it('changePriority moves an urgent row behind the other urgent ones', async () => {
    await contract.add('n1');
    for (const id of ['u1', 'u2', 'u3']) await contract.addUrgent(id);
    await (await contract.addUrgent('u1')).changePriority({ priority: 0 });
    expect(await orderOf(4)).toEqual(['u2', 'u3', 'u1', 'n1']);
  });

  it('changePriority with the same priority moves a row behind the others of that priority', async () => {
    const [first] = [await contract.add('n1'), await contract.add('n2')];
    await first?.changePriority({ priority: 10 });
    expect(await orderOf(2)).toEqual(['n2', 'n1']);
  });

  it('getJobs returns the priority that changePriority set', async () => {
    await (await contract.add('a')).changePriority({ priority: 0 });
    const jobs = await contract.queue.getJobs(['waiting', 'prioritized']);
    expect(jobs.map(({ priority }) => priority)).toEqual([0]);
    expect(await contract.queue.getWaitingCount()).toBe(1);
  });

  it('a feeder that does not see the oldest urgent rows moves them to the tail in each round', async () => {
    for (const id of ['u1', 'u2', 'u3', 'u4']) await contract.addUrgent(id);
    const seen = (await contract.queue.getJobs(['waiting', 'prioritized'], 0, 1)).map(({ data }) => data.id);
    for (const id of ['u1', 'u2'].filter((due) => !seen.includes(due)))
      await (await contract.addUrgent(id)).changePriority({ priority: 0 });
    expect(await orderOf(4)).toEqual(['u3', 'u4', 'u1', 'u2']);
  });

  describe('the counts of a queue', () => {
    beforeEach(async () => {
      for (const id of ['n1', 'n2', 'n3']) await contract.add(id);
      for (const id of ['u1', 'u2']) await contract.addUrgent(id);
    });

    it('have rows that are not urgent in getPrioritizedCount only', async () => {
      expect(await contract.queue.getWaitingCount()).toBe(2);
      expect(await contract.queue.getPrioritizedCount()).toBe(3);
    });

    it('are complete in getJobs of both states, newest first', async () => {
      const jobs = await contract.queue.getJobs(['waiting', 'prioritized']);
      expect(jobs.map(({ data }) => data.id)).toEqual(['u2', 'u1', 'n3', 'n2', 'n1']);
    });

    it('are cut by getJobs for each state, so that it returns the rows that start last', async () => {
      const jobs = await contract.queue.getJobs(['waiting', 'prioritized'], 0, 1);
      expect(jobs.map(({ data }) => data.id)).toEqual(['u2', 'u1', 'n3', 'n2']);
    });

    it('are cut to those that start first in ascending order', async () => {
      const jobs = await contract.queue.getJobs(['waiting', 'prioritized'], 0, 1, true);
      expect(jobs.map(({ data }) => data.id)).toEqual(['u1', 'u2', 'n1', 'n2']);
    });
  });
}
