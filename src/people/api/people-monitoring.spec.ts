import { Clock } from '../../config/clock.js';
import type { Database } from '../../database/database.js';
import { Metrics } from '../../http/server/metrics.js';
import type { PlatformPeople } from '../reconcile/platform-people.js';
import type { CircuitsRepository } from '../store/circuits.repository.js';
import { PeopleMonitoring } from './people-monitoring.js';

/** The text of the metrics over a database that counts like this. */
function metricsOver(count: () => object[], monotonicMs: () => number): () => Promise<string> {
  const metrics = new Metrics();
  const database = { pool: { query: async () => ({ rows: count() }) } } as unknown as Database;
  const clock = Object.assign(new Clock(), { monotonicMs });
  new PeopleMonitoring(metrics, database, clock, {} as CircuitsRepository, {} as PlatformPeople);
  return () => metrics.registry.metrics();
}

test('everybody is counted for a hundredth of the time at most, however often the metrics are read', async () => {
  let nowMs = 0;
  let counted = 0;
  const metrics = metricsOver(
    () => {
      nowMs += 560; // what a million people took
      counted += 1;
      return [{ kind: 'client', state: 'synced', people: counted, stuck: 0 }];
    },
    () => nowMs,
  );
  const read = async () => /^notebridge_people\{.*state="synced"\} ([1-9]\d*)$/m.exec(await metrics())?.[1];

  for (; nowMs < 56_000; nowMs += 1_000) expect(await read()).toBe('1');
  nowMs += 1_000;
  expect(await read()).toBe('2');
  expect(counted).toBe(2);
});

test('a count that fails is made again at the next reading', async () => {
  let fails = true;
  const metrics = metricsOver(
    () => {
      if (fails) throw new Error('the database is away');
      return [{ kind: 'client', state: 'synced', people: 7, stuck: 0 }];
    },
    () => 0,
  );
  expect(await metrics()).not.toMatch(/notebridge_people\{/);
  fails = false;
  expect(await metrics()).toMatch(/notebridge_people\{.*\} 7/);
});

test('a state that nobody is in has its 0, so that it can be compared with', async () => {
  let people = 3;
  const metrics = metricsOver(
    () => (people > 0 ? [{ kind: 'client', state: 'needs-review', people, stuck: 1 }] : []),
    () => 0,
  );
  const read = async (name: string) =>
    new RegExp(`^notebridge_${name}\\{kind="client",state="needs-review"\\} (\\d+)$`, 'm').exec(await metrics())?.[1];
  expect([await read('people'), await read('people_stuck')]).toEqual(['3', '1']);
  people = 0;
  expect([await read('people'), await read('people_stuck')]).toEqual(['0', '0']);
  expect(await metrics()).toContain('notebridge_people{kind="provider",state="deleted"} 0');
});
