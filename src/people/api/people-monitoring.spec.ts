import { Clock } from '../../config/clock.js';
import type { PrismaService } from '../../database/prisma.service.js';
import { Metrics } from '../../monitoring/metrics.js';
import type { Contract } from '../../platform/contract/contract.js';
import { PeopleMonitoring } from './people-monitoring.js';

/** Reads the metrics over a database whose counts `count` gives. */
function metricsOver(count: () => object[], monotonicMs: () => number): () => Promise<string> {
  const metrics = new Metrics();
  const prisma = { $queryRawUnsafe: async () => count() } as unknown as PrismaService;
  const clock = Object.assign(new Clock(), { monotonicMs });
  new PeopleMonitoring(metrics, prisma, clock, {} as Contract);
  return () => metrics.registry.metrics();
}

test('counting people takes at most 1% of the time, regardless of how often the metrics are read', async () => {
  let nowMs = 0;
  let counted = 0;
  const metrics = metricsOver(
    () => {
      nowMs += 560; // as measured for a million people
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

test('a failed count of people is retried at the next reading', async () => {
  let fails = true;
  const metrics = metricsOver(
    () => {
      if (fails) throw new Error('the database is unavailable');
      return [{ kind: 'client', state: 'synced', people: 7, stuck: 0 }];
    },
    () => 0,
  );
  expect(await metrics()).not.toMatch(/notebridge_people\{/);
  fails = false;
  expect(await metrics()).toMatch(/notebridge_people\{.*\} 7/);
});

test('the metrics report 0 for a state without people', async () => {
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
