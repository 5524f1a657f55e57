import { exitCodeOf, type Status, statusLines } from './status.js';

const CAUSE: Status['health']['causes'][number] = {
  code: 'no-worker',
  part: 'worker',
  status: 'degraded',
  cause: 'No process with the role worker is running.',
  action: 'Start one.',
  since: '2026-03-01T10:02:03.456Z',
  hasKnownStart: true,
  affects: ['people', 'sessions'],
};

const statusOf = (health: Partial<Status['health']>, capabilitiesOff: Status['capabilitiesOff'] = []): Status => ({
  health: { status: 'ok', causes: [], checks: {}, ...health },
  capabilitiesOff,
});

test('prints a cause, what to do, and what it affects', () => {
  const status = statusOf({ status: 'degraded', causes: [CAUSE] });
  expect(exitCodeOf(status)).toBe(2);
  expect(statusLines(status)).toBe(`✗ notebridge is degraded
  ✗ No process with the role worker is running.
    Start one. Since 2026-03-01 10:02:03 UTC.
    Affected: people, sessions.`);
});

test('lists only capabilities that are off', () => {
  expect(statusLines(statusOf({}))).toBe('✓ notebridge is ok');
  expect(statusLines(statusOf({}, null))).toBe('✓ notebridge is ok');
  expect(statusLines(statusOf({}, [{ name: 'recorder', missing: ['PLATFORM_PARTNER_DOMAIN'] }]))).toBe(
    '✓ notebridge is ok\n– capabilities that are off: 1\n  – recorder: set PLATFORM_PARTNER_DOMAIN',
  );
});

test('shows a dry run that can be applied, without counting it as a fault', () => {
  const status = statusOf({ checks: { decisions: { status: 'ok', facts: { 'import-dry-run': 2 } } } });
  expect(exitCodeOf(status)).toBe(0);
  expect(statusLines(status)).toContain('\n  – Dry runs whose plan can be applied: 2. See npx notebridge imports.');
});
