import { Metrics } from '../../http/server/metrics.js';
import { PeopleMetrics, type StuckRepository } from './people-monitoring.js';

test('everybody is counted for a hundredth of the time at most, however often the metrics are read', async () => {
  let nowMs = 0;
  let counted = 0;
  const stuck = {
    async count() {
      nowMs += 560; // what a million people took
      counted += 1;
      return [{ kind: 'client', state: 'synced', people: counted, stuck: 0 }];
    },
  } as unknown as StuckRepository;
  const metrics = new Metrics();
  new PeopleMetrics(metrics, stuck, { now: () => new Date(nowMs), monotonicMs: () => nowMs });
  const read = async () => /^notebridge_people\{.*\} (\d+)$/m.exec(await metrics.registry.metrics())?.[1];

  for (; nowMs < 56_000; nowMs += 1_000) expect(await read()).toBe('1');
  nowMs += 1_000;
  expect(await read()).toBe('2');
  expect(counted).toBe(2);
});

test('a count that fails is made again at the next reading', async () => {
  let fails = true;
  const stuck = {
    async count() {
      if (fails) throw new Error('the database is away');
      return [{ kind: 'client', state: 'synced', people: 7, stuck: 0 }];
    },
  } as unknown as StuckRepository;
  const metrics = new Metrics();
  new PeopleMetrics(metrics, stuck, { now: () => new Date(0), monotonicMs: () => 0 });
  expect(await metrics.registry.metrics()).not.toMatch(/notebridge_people\{/);
  fails = false;
  expect(await metrics.registry.metrics()).toMatch(/notebridge_people\{.*\} 7/);
});
