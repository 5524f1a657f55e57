import type { Health, HealthPart, Reason } from '../../monitoring/health-indicator.js';
import { HEALTH_TEXTS, type ReasonCode } from '../../monitoring/health-texts.js';
import { type Answer, reportOf } from './health-report.js';

const SEEN = new Date('2026-03-01T03:00:00Z');

/** The parts of a service, and what they need. */
const PARTS: HealthPart[] = [
  { name: 'inbox', vital: true, needs: ['database'] },
  { name: 'people', needs: ['worker'] },
  { name: 'platform', needs: ['worker'] },
  { name: 'worker', needs: ['database'] },
  { name: 'vault' },
  { name: 'database' },
];

const failing = (status: 'degraded' | 'down', ...reasons: (ReasonCode | Reason)[]): Health => ({
  status,
  reasons: reasons.map((reason) => (typeof reason === 'string' ? { code: reason } : reason)),
});

/** The report if these parts fail and all others are healthy. */
function report(failures: Record<string, Health>) {
  const answers: Answer[] = PARTS.map((part) => ({ ...part, health: failures[part.name] ?? { status: 'ok' } }));
  return reportOf(answers, () => SEEN);
}

const NOTHING_READ = failing('down', { code: 'database-unavailable', follows: true });

describe('the report', () => {
  it('is ok if every part is', () => {
    expect(report({})).toMatchObject({ status: 'ok', causes: [], checks: { database: { status: 'ok' } } });
  });

  it.each([
    [{ vault: failing('degraded', 'unreadable-values') }, 'degraded'],
    [{ vault: failing('down', 'unreadable-values') }, 'degraded'],
    [{ inbox: failing('degraded', 'inbox-not-writable') }, 'degraded'],
    [{ inbox: failing('down', 'inbox-not-writable') }, 'down'],
  ] as const)('is down only if a vital part is (%#)', (failures, status) => {
    expect(report(failures).status).toBe(status);
  });

  it('names an unreachable database once, with all parts that follow from it', () => {
    const { status, causes, checks } = report({
      database: failing('down', 'database-unavailable'),
      inbox: failing('down', { code: 'inbox-not-writable', follows: true }),
      people: NOTHING_READ,
      worker: NOTHING_READ,
    });
    expect(status).toBe('down');
    expect(causes).toEqual([
      {
        code: 'database-unavailable',
        part: 'database',
        status: 'down',
        ...HEALTH_TEXTS['database-unavailable'],
        since: SEEN,
        hasKnownStart: false,
        affects: ['inbox', 'people', 'platform', 'worker'],
      },
    ]);
    // An answer from memory is no longer true either.
    expect(checks.platform).toEqual({ status: 'down', causedBy: 'database' });
    expect(checks.vault).toEqual({ status: 'ok' });
  });

  it('believes a vital part that works although a part that it needs fails', () => {
    const { status, checks } = report({ database: failing('down', 'database-unavailable') });
    expect([status, checks.inbox]).toEqual(['degraded', { status: 'ok' }]);
  });

  it('explains late work, and work that seems fine, by the missing worker', () => {
    const since = new Date('2026-03-01T02:00:00Z');
    const { causes, checks } = report({
      worker: failing('degraded', { code: 'no-worker', since }),
      people: failing('degraded', { code: 'sessions-late', follows: true }),
    });
    expect(causes).toMatchObject([{ code: 'no-worker', since, hasKnownStart: true, affects: ['people', 'platform'] }]);
    expect(checks.people).toEqual({ status: 'degraded', causedBy: 'worker' });
  });

  it('keeps an independent cause in addition to a shared one', () => {
    const { causes, checks } = report({
      worker: failing('degraded', 'no-worker'),
      people: failing('degraded', 'not-configured'),
    });
    expect(causes.map(({ code, affects }) => [code, affects])).toEqual([
      ['no-worker', ['platform']],
      ['not-configured', []],
    ]);
    expect(checks.people?.reason).toBe(
      'PLATFORM_CONTRACT has no apiKey.header, so nothing is sent. Set it and restart. Work is kept.',
    );
  });

  it('joins what two parts report about one operation, and points from one to the other', () => {
    const unreachable = (operations: string, detail: string) =>
      failing('degraded', { code: 'platform-fault', values: { operations, detail } });
    const { causes, checks } = report({
      people: unreachable('checkUser', 'ECONNREFUSED'),
      platform: unreachable('checkUser', 'next probe at 03:10'),
    });
    expect(causes.map(({ cause }) => cause)).toEqual([
      'The platform cannot be reached or gives no readable answer: checkUser (ECONNREFUSED, next probe at 03:10).',
    ]);
    expect(checks.platform).toEqual({ status: 'degraded', causedBy: 'people' });
  });

  it('names late work itself if everything that it needs is healthy', () => {
    const { causes } = report({ people: failing('degraded', { code: 'sessions-late', follows: true }) });
    expect(causes).toMatchObject([{ code: 'sessions-late', part: 'people' }]);
  });

  it('joins the same cause of several parts', () => {
    const refused = (...operations: string[]) =>
      failing(
        'degraded',
        ...operations.map((name) => ({ code: 'platform-unauthorized' as const, values: { operations: name } })),
      );
    const { causes } = report({ people: refused('checkUser', 'deleteUser'), platform: refused('getSession') });
    expect(causes).toMatchObject([
      {
        part: 'people',
        cause: 'The platform rejects PLATFORM_API_KEY: checkUser, deleteUser, getSession.',
        affects: ['platform'],
      },
    ]);
  });

  it('begins with what does not work at all', () => {
    const { causes } = report({
      worker: failing('degraded', 'no-worker'),
      vault: failing('down', 'unreadable-values'),
    });
    expect(causes.map(({ code }) => code)).toEqual(['unreadable-values', 'no-worker']);
  });
});
