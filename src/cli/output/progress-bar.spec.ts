import fc from 'fast-check';
import { type Progress, progressLine, progressWords } from './progress-bar.js';

const halfway: Progress = { done: 21, total: 42, noun: 'rows', note: '40 calls', etaSeconds: 8 };

test('the words name what is done, and what is left while something is', () => {
  expect(progressWords(halfway)).toBe('21 of 42 rows · 40 calls · about 8 s left');
  expect(progressWords({ ...halfway, done: 42 })).toBe('42 of 42 rows · 40 calls');
  expect(progressWords({ ...halfway, etaSeconds: null })).toBe('21 of 42 rows · 40 calls');
});

test('the bar is filled by the share that is done', () => {
  const line = progressLine(halfway, 100);
  expect(line).toMatch(/^█{16}░{16} {2}50% {2}21 of 42/);
});

test('nothing to do is all done', () => {
  expect(progressLine({ done: 0, total: 0, noun: 'rows', etaSeconds: null }, 80)).toMatch(/^█+ 100%/);
});

test('a line never wraps, whatever the counts and the width of the terminal', () => {
  const counts = { done: fc.nat(1e9), total: fc.nat(1e9), etaSeconds: fc.option(fc.nat(1e6)) };
  fc.assert(
    fc.property(fc.record(counts), fc.integer({ min: 2, max: 300 }), (progress, columns) => {
      expect(progressLine({ ...progress, noun: 'rows', note: '7 calls' }, columns).length).toBeLessThan(columns);
    }),
  );
});
