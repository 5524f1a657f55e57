import { LiveLine } from './live-line.js';

const progress = (done: number) => ({ done, total: 10, noun: 'rows', etaSeconds: null });

function record(isTTY: boolean) {
  const written: string[] = [];
  const clock = { nowMs: 0 };
  const live = new LiveLine({ isTTY, columns: 60, write: (text) => written.push(text) }, () => clock.nowMs);
  return { written, clock, live };
}

test('on a terminal one line is rewritten, and left standing at the end', () => {
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

test('elsewhere plain lines come now and then, and none twice', () => {
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

test('nothing shown leaves nothing', () => {
  const { written, live } = record(true);
  live.end();
  expect(written).toEqual([]);
});
