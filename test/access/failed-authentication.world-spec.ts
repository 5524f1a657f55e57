import { randomBytes } from 'node:crypto';
import { useAccess } from './use-access.js';

const { world, ask, makeKey } = useAccess();

const SOURCE = '198.51.100.7';
const wrongKey = () => `nb_${randomBytes(32).toString('base64url')}`;
const from = (source: string, headers: Record<string, string> = {}) => ({ 'x-forwarded-for': source, ...headers });
const read = (key: string, source = SOURCE) => ask('GET /v1/capabilities', { key, headers: from(source) });
const many = <T>(count: number, request: (index: number) => Promise<T>) =>
  Promise.all(Array.from({ length: count }, (_, index) => request(index)));
const times = (count: number) => `unauthenticated, ${count} times`;
const unauthenticated = (responses: { status: number }[]) => responses.filter(({ status }) => status === 401).length;
const statusesOf = (responses: { status: number }[]) => [...new Set(responses.map(({ status }) => status))];

interface Entry {
  source: string;
  outcome: string;
}

/** The entries of failed authentication, as [source, outcome], once a minute has ended and `count` of them are stored. */
async function entriesAfterAMinute(count: number): Promise<[string, string][]> {
  await world.advance('1 min');
  const stored = `SELECT FROM audit_entries WHERE action = 'authentication.failed'`;
  await world.eventually('the entries are stored', async () => (await world.sql(stored)).length >= count);
  const { body } = await ask<{ items: Entry[] }>('GET /v1/audit?action=authentication.failed&limit=200');
  return body.items.map(({ source, outcome }): [string, string] => [source, outcome]).sort();
}

describe('failed authentication', () => {
  it('gets 401, or 429 beyond five a second of one source, and rejects no valid key of it', async () => {
    const failures = async () =>
      Number(/authentication_failures_total (\d+)/.exec((await world.call('GET', '/metrics')).text)?.[1]);
    const before = await failures();
    const { key } = await makeKey(['imports']);
    const [attack, valid] = await Promise.all([many(200, () => read(wrongKey())), many(20, () => read(key))]);
    expect([statusesOf(attack).sort(), statusesOf(valid)]).toEqual([[401, 429], [200]]);
    expect((await read('malformed', '203.0.113.9')).status).toBe(401);
    expect((await failures()) - before).toBe(unauthenticated(attack) + 1);
  });

  it('counts wrong session cookies, and rejects no valid session', async () => {
    const source = '198.51.100.8'; // Another test may have used up the limit of SOURCE.
    const opened = await ask('POST /v1/browser-session');
    const valid = opened.headers.get('set-cookie')?.split(';')[0] ?? '';
    const visit = (cookie: string) => ask('GET /v1/browser-session', { key: null, headers: from(source, { cookie }) });
    const wrong = () => visit(`__Host-notebridge_session=${randomBytes(32).toString('base64url')}`);
    const attack = await many(50, wrong);
    expect(statusesOf(attack).sort()).toEqual([401, 429]);
    // A late response must not remove the cookie of a session that was opened since then.
    expect(attack.find(({ headers }) => headers.has('set-cookie'))).toBeUndefined();
    expect([(await visit(valid)).status, (await visit('')).status]).toEqual([200, 401]);
    expect(await entriesAfterAMinute(1)).toEqual([[source, times(unauthenticated(attack))]]);
  });

  it('leaves one audit entry per source and minute', async () => {
    const source = '198.51.100.9';
    const attack = await many(30, () => read(wrongKey(), source));
    await read(wrongKey(), '203.0.113.9');
    const first = [
      [source, times(unauthenticated(attack))],
      ['203.0.113.9', times(1)],
    ];
    expect(await entriesAfterAMinute(2)).toEqual(first);
    await read(wrongKey(), '192.0.2.1');
    expect(await entriesAfterAMinute(3)).toEqual([['192.0.2.1', times(1)], ...first]);
  });

  it('is counted for 200 sources, and together for all others', async () => {
    await many(250, (index) => read(wrongKey(), `2001:db8:${index.toString(16)}::1`));
    await entriesAfterAMinute(201);
    const entries = await world.sql(`SELECT source, outcome FROM audit_entries WHERE key_id = 'unknown'`);
    expect(entries).toHaveLength(201);
    expect(entries).toContainEqual({ source: 'others', outcome: times(50) });
  });

  it('is recorded before the process ends', async () => {
    await many(3, () => read(wrongKey(), '198.51.100.10'));
    await world.restart();
    const outcomes = `SELECT outcome FROM audit_entries WHERE action = 'authentication.failed'`;
    expect(await world.sql(outcomes)).toEqual([{ outcome: times(3) }]);
  });
});
