import { Oracle } from '../oracle.js';
import { Lags } from './lags.js';
import { header, line, type Row } from './row.js';
import { bytesPerEvent, judge } from './trends.js';

const LAG = { p50: 100, p99: 400, max: 900 };
const PROCESS = { name: 'worker 2', pid: 7 };

/** Nine rows of a run in which nothing grows but what is stored. */
function rows(change: (row: Row, at: number) => Partial<Row> = () => ({})): Row[] {
  return Array.from({ length: 9 }, (_, at) => {
    const row: Row = {
      minutes: 5 * (at + 1),
      processes: [{ ...PROCESS, mib: 200 }],
      apiMib: 210,
      workerMib: 200,
      starts: 4 + at,
      postgres: 40,
      redis: 30,
      databaseMib: 20 + at,
      feed: LAG,
      push: LAG,
      webhook: LAG,
      notes: LAG,
      dueSeconds: 1,
      kills: at,
      faults: at,
      requests: 100 * at,
      sessions: 50 * at,
      held: 0,
      events: 500 * at,
      logMib: at,
      ownMib: 300,
      load: 2,
    };
    return { ...row, ...change(row, at) };
  });
}

function broken(...given: Parameters<typeof rows>): readonly string[] {
  const oracle = new Oracle();
  judge(rows(...given), oracle);
  return oracle.broken;
}

test('steady rows break no law, and a first row without a rest breaks none', () => {
  expect(broken()).toEqual([]);
  expect(broken((_, at) => (at === 0 ? { feed: { ...LAG, p50: 1 }, redis: 1 } : {}))).toEqual([]);
});

test.each<[string, (row: Row, at: number) => Partial<Row>]>([
  ['MiB of worker 2 at the end', (_, at) => ({ processes: [{ ...PROCESS, mib: 150 + 30 * at }] })],
  ['MiB of an api process', (_, at) => ({ apiMib: at === 0 ? 600 : 200 })],
  ['connections to PostgreSQL', (_, at) => ({ postgres: at === 5 ? 77 : 40 })],
  ['connections to redis at the end', (_, at) => ({ redis: 30 + 2 * at })],
  ['middle lag of push in ms at the end', (_, at) => ({ push: { ...LAG, p50: 100 + 1_000 * at } })],
  ['sessions held back on a machine that was not busy', (_, at) => ({ held: 10 * at })],
  ['bytes of disk per event at the end', (_, at) => ({ databaseMib: 20 + at ** 2 })],
])('what grows breaks a law: %s', (law, change) => {
  expect(broken(change)).toEqual([expect.stringContaining(law)]);
});

test('lags and held sessions of a busy machine break no law', () => {
  expect(broken((_, at) => ({ load: 9, held: 10 * at, notes: { ...LAG, p50: 100 + 9_000 * at } }))).toEqual([]);
});

test('memory of a recently started process is not judged', () => {
  expect(broken((_, at) => ({ processes: [{ name: 'api 1', pid: at > 4 ? 2 : 1, mib: 100 + 40 * at }] }))).toEqual([]);
});

test('disk is counted per event', () => {
  expect(bytesPerEvent(rows())).toBe(Math.round(1024 ** 2 / 500));
  expect(bytesPerEvent([])).toBe(0);
});

test('waits are told once, and a row is as wide as its header', () => {
  const lags = new Lags();
  for (let ms = 100; ms >= 1; ms -= 1) lags.add(ms);
  expect(lags.take()).toEqual({ p50: 50, p99: 99, max: 100 });
  expect(lags.take()).toBeNull();
  expect(line(rows()[8] as Row)).toHaveLength(header().length);
});
