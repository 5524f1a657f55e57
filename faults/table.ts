import type { PlannedRun } from './plan.js';
import type { Outcome } from './run-scenario.js';

interface Row {
  readonly run: PlannedRun;
  readonly outcome: Outcome;
}

const COLUMNS: readonly [name: string, value: (row: Row) => string | number][] = [
  ['scenario', ({ run }) => run.scenario.name],
  ['queues', ({ run }) => run.queue],
  ['kills', ({ outcome }) => outcome.counts.kills],
  ['faults', ({ outcome }) => outcome.counts.faults],
  ['starts', ({ outcome }) => outcome.counts.starts],
  ['webhooks', ({ outcome }) => outcome.counts.deliveries],
  ['calls', ({ outcome }) => outcome.counts.calls],
  ['lost answers', ({ outcome }) => outcome.counts.lostAnswers],
  ['requests', ({ outcome }) => outcome.counts.requests],
  ['violations', ({ outcome }) => outcome.broken.length],
  ['seconds', ({ outcome }) => Math.round(outcome.seconds)],
];

/** The counts and the outcome of each run: texts left-aligned, numbers right-aligned. */
export function table(rows: readonly Row[]): string {
  const cells = [COLUMNS.map(([name]) => name), ...rows.map((row) => COLUMNS.map(([, value]) => String(value(row))))];
  const widths = COLUMNS.map((_, at) => Math.max(...cells.map((line) => (line[at] ?? '').length)));
  const texts = 2;
  return cells
    .map((line) =>
      line.map((cell, at) => (at < texts ? cell.padEnd(widths[at] ?? 0) : cell.padStart(widths[at] ?? 0))).join('  '),
    )
    .join('\n');
}
