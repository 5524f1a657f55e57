import { exitCodeOf, type Status, statusLines } from './status.js';

function statusOf(waiting: Status['waiting']): Status {
  return { health: { status: 'ok', checks: {} }, capabilitiesOff: [], waiting };
}

const DRY_RUN = { kind: 'import-dry-run', count: 2, list: '/v1/imports' };
const HELD_BACK = { kind: 'import-planned', count: 1, list: '/v1/imports' };

test('the plan of a dry run waits for somebody, and is no fault', () => {
  expect(exitCodeOf(statusOf([DRY_RUN]))).toBe(0);
  expect(statusLines(statusOf([DRY_RUN]))).toContain(
    '\n– waiting for you\n  –     2 import-dry-run: npx notebridge imports',
  );
});

test('whatever else waits is a fault until somebody saw to it', () => {
  expect(exitCodeOf(statusOf([]))).toBe(0);
  expect(exitCodeOf(statusOf([HELD_BACK, DRY_RUN]))).toBe(2);
  expect(statusLines(statusOf([HELD_BACK, DRY_RUN]))).toContain('\n✗ waiting for you\n  ✗     1 import-planned: ');
});
