import { randomBytes } from 'node:crypto';
import { LOCKOUT_SECONDS, MOST_FAILURES } from '../../src/access/guard/attempt-rules.js';
import { FailedAttempts } from '../../src/access/guard/failed-attempts.js';
import { Problem } from '../../src/http/problem/problem.js';
import { ADMIN_KEY } from '../support/app.js';
import { useAccess } from './use-access.js';

const { world, ask, makeKey } = useAccess();

const SOURCE = '198.51.100.7';
const wrongKey = () => `nb_${randomBytes(32).toString('base64url')}`;
const from = (source: string, headers: Record<string, string> = {}) => ({ 'x-forwarded-for': source, ...headers });
const read = (key: string, { on = world as { url: string }, source = SOURCE } = {}) =>
  ask('GET /v1/capabilities', { key, on, headers: from(source) });

/** Sends wrong keys concurrently. @returns the statuses */
async function attack(count: number, key = wrongKey, options = (_: number): Parameters<typeof read>[1] => ({})) {
  const answers = Array.from({ length: count }, (_, index) => read(key(), options(index)));
  return (await Promise.all(answers)).map(({ status }) => status);
}

/** Has the processes write the audit entries that are due after a minute. @returns all of them */
async function auditAfterAMinute(
  ...others: FailedAttempts[]
): Promise<{ source: string; outcome: string; keyId: string }[]> {
  const processes = [world.get(FailedAttempts), ...others];
  for (const each of processes) await each.flush();
  await world.advance('1 min');
  for (const each of processes) await each.sweep();
  return (await ask<{ items: never[] }>('GET /v1/audit?action=authentication.failed')).body.items;
}

describe('failed authentication', () => {
  it('locks the source of many wrong keys out of every process, but no other source and no valid key', async () => {
    const { key } = await makeKey(['imports']);
    const other = await world.startAnother();
    const statuses = await attack(100, wrongKey, (index) => ({ on: index % 2 ? world : other }));
    expect(new Set(statuses)).toEqual(new Set([401, 429]));
    expect(statuses.filter((status) => status === 401).length).toBeLessThan(MOST_FAILURES);
    for (const on of [world, other]) {
      const locked = await read(wrongKey(), { on });
      expect(locked).toMatchObject({ status: 429, problem: 'too-many-failures' });
      expect(Number(locked.headers.get('retry-after'))).toBeGreaterThan(LOCKOUT_SECONDS - 10);
      expect(await read('malformed', { on })).toMatchObject({ status: 429 });
      expect(await read(key, { on })).toMatchObject({ status: 200 });
      expect(await read(wrongKey(), { on, source: '203.0.113.9' })).toMatchObject({ status: 401 });
    }
    const counters = other.app.get(FailedAttempts, { strict: false });
    const entries = await auditAfterAMinute(counters);
    const total = (source: string) =>
      entries.filter((entry) => entry.source === source).map(({ outcome }) => Number.parseInt(outcome, 10));
    expect([total(SOURCE), total('203.0.113.9')]).toEqual([[104], [2]]);
    expect(await auditAfterAMinute(counters)).toHaveLength(2);
  });

  it('counts wrong session cookies with wrong keys, but rejects no valid session', async () => {
    const opened = await ask('POST /v1/browser-session');
    const valid = opened.headers.get('set-cookie')?.split(';')[0] ?? '';
    const visit = (cookie: string) => ask('GET /v1/browser-session', { key: null, headers: from(SOURCE, { cookie }) });
    const wrong = () => visit(`__Host-notebridge_session=${randomBytes(32).toString('base64url')}`);
    const first = await wrong();
    // A late answer must not remove the cookie of a session that was opened since then.
    expect([first.status, first.headers.get('set-cookie')]).toEqual([401, null]);
    await Promise.all(Array.from({ length: 50 }, wrong));
    expect((await wrong()).status).toBe(429);
    expect([(await visit(valid)).status, (await read(ADMIN_KEY)).status, (await visit('')).status]).toEqual([
      200, 200, 401,
    ]);
    expect(await auditAfterAMinute()).toMatchObject([
      { source: SOURCE, keyId: 'unknown', outcome: expect.stringMatching(/^52\b/) },
    ]);
  });

  it('locks wrong keys with the same prefix out for all sources, but not the valid key', async () => {
    const { key, prefix } = await makeKey(['imports']);
    const guess = () => prefix + wrongKey().slice(prefix.length);
    const anywhere = (index: number) => ({ source: `2001:db8:${index.toString(16)}::1` });
    await attack(MOST_FAILURES + 1, guess, anywhere);
    expect(await attack(2, guess, (index) => anywhere(index + 100))).toEqual([429, 429]);
    expect(await read(key, { source: '2001:db8:ffff::1' })).toMatchObject({ status: 200 });
  });

  it('is forgotten after the lockout', async () => {
    await attack(2 * MOST_FAILURES);
    expect((await read(wrongKey())).status).toBe(429);
    await auditAfterAMinute();
    await world.advance(`${LOCKOUT_SECONDS} s`);
    expect((await read(wrongKey())).status).toBe(401);
    await auditAfterAMinute();
    await world.advance(`${LOCKOUT_SECONDS} s`);
    await auditAfterAMinute();
    expect(await world.sql('SELECT * FROM failed_attempts')).toEqual([]);
  });

  it('is counted for 10,000 sources, and together for all others', async () => {
    const guard = world.get(FailedAttempts);
    const source = (index: number) => `2001:db8:${(index >> 8).toString(16)}:${(index & 255).toString(16)}::1`;
    await Promise.allSettled(
      Array.from({ length: 12_000 }, (_, index) => guard.refuse(source(index), undefined, new Problem(401, 'x', 'X.'))),
    );
    await guard.flush();
    const counted = 'SELECT count(*)::int AS rows, sum(failures)::int AS failures FROM failed_attempts';
    expect(await world.sql(counted)).toEqual([{ rows: 10_001, failures: 12_000 }]);
  });
});
