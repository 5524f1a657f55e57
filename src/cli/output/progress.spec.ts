import fc from 'fast-check';
import { propertyRuns } from '../../config/property-runs.spec-support.js';
import { LiveLine, type Progress, progressLine, progressWords } from './progress.js';

const halfway: Progress = { done: 21, total: 42, noun: 'rows', note: '40 calls', etaSeconds: 8 };

test('the text names the work done and, until the end, the time left', () => {
  expect(progressWords(halfway)).toBe('21 of 42 rows · 40 calls · about 8 s left');
  expect(progressWords({ ...halfway, done: 42 })).toBe('42 of 42 rows · 40 calls');
  expect(progressWords({ ...halfway, etaSeconds: null })).toBe('21 of 42 rows · 40 calls');
  expect(progressWords({ ...halfway, etaMinSeconds: 5 })).toBe('21 of 42 rows · 40 calls · about 5 s to 8 s left');
  expect(progressWords({ ...halfway, etaMinSeconds: 8 })).toBe('21 of 42 rows · 40 calls · about 8 s left');
});

test('the bar shows the share of the work done', () => {
  const line = progressLine(halfway, 100);
  expect(line).toMatch(/^█{16}░{16} {2}50% {2}21 of 42/);
});

test('the bar is full if there is nothing to do', () => {
  expect(progressLine({ done: 0, total: 0, noun: 'rows', etaSeconds: null }, 80)).toMatch(/^█+ 100%/);
});

test('a line never wraps, regardless of counts and terminal width', () => {
  const counts = { done: fc.nat(1e9), total: fc.nat(1e9), etaSeconds: fc.option(fc.nat(1e6)) };
  fc.assert(
    fc.property(fc.record(counts), fc.integer({ min: 2, max: 300 }), (progress, columns) => {
      expect(progressLine({ ...progress, noun: 'rows', note: '7 calls' }, columns).length).toBeLessThan(columns);
    }),
    propertyRuns(),
  );
});

const progress = (done: number) => ({ done, total: 10, noun: 'rows', etaSeconds: null });

function record(isTTY: boolean) {
  const written: string[] = [];
  const clock = { nowMs: 0 };
  const live = new LiveLine({ isTTY, columns: 60, write: (text) => written.push(text) }, () => clock.nowMs);
  return { written, clock, live };
}

test('on a terminal, rewrites one line and leaves it at the end', () => {
  const { written, live } = record(true);
  live.show(progress(1));
  live.show(progress(1));
  live.show(progress(2));
  live.end();
  expect(written).toHaveLength(3);
  expect(written[1]?.startsWith('\r\u001b[2K')).toBe(true);
  expect(written[1]).toMatch(/2 of 10 rows$/);
  expect(written[2]).toBe('\n');
});

test('without a terminal, prints a line every few seconds, and none twice', () => {
  const { written, clock, live } = record(false);
  for (const [nowMs, done] of [
    [0, 1],
    [1_000, 2],
    [6_000, 3],
    [12_000, 3],
  ] as const) {
    clock.nowMs = nowMs;
    live.show(progress(done));
  }
  live.end();
  expect(written).toEqual(['1 of 10 rows\n', '3 of 10 rows\n']);
});

test('prints nothing at the end if no progress was shown', () => {
  const { written, live } = record(true);
  live.end();
  expect(written).toEqual([]);
});
