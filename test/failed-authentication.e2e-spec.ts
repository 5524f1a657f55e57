import { randomBytes } from 'node:crypto';
import type { NestFastifyApplication } from '@nestjs/platform-fastify';
import { until } from '../harness/until.js';
import { LOCKOUT_SECONDS, MOST_FAILURES } from '../src/access/guard/attempt-rules.js';
import { FailedAttempts } from '../src/access/guard/failed-attempts.js';
import { Database } from '../src/database/database.js';
import { Problem } from '../src/http/problem/problem.js';
import { ADMIN_KEY } from './support/app.js';
import { freshDatabase, type TestDatabase } from './support/databases.js';
import { baseOf, startApp } from './support/start-app.js';

const ATTEMPTS = 5_000;
const AT_ONCE = 40;
const ATTACKER = '198.51.100.7';

let database: TestDatabase;
let one: NestFastifyApplication;
let other: NestFastifyApplication;

beforeAll(async () => {
  database = await freshDatabase();
  [one, other] = [await start(), await start()];
});

/** One process, whose requests wait for the database however long: a 503 would be an answer that no test expects. */
async function start(): Promise<NestFastifyApplication> {
  const { app } = await startApp(database.url, { TRUSTED_PROXIES: '127.0.0.1' }, baseOf);
  app.get(Database).pool.options.connectionTimeoutMillis = 0;
  return app;
}
afterAll(async () => {
  await one?.close();
  await other?.close();
  await database?.drop();
});

const wrongKey = () => `nb_${randomBytes(32).toString('base64url')}`;

async function call(
  key: string,
  { on = one, from = ATTACKER, path = '/v1/api-keys', body = undefined as unknown } = {},
) {
  const response = await fetch((await on.getUrl()) + path, {
    method: body === undefined ? 'GET' : 'POST',
    headers: {
      authorization: `Bearer ${key}`,
      'x-forwarded-for': from,
      ...(body !== undefined && { 'content-type': 'application/json' }),
    },
    body: body === undefined ? undefined : JSON.stringify(body),
  });
  const json = JSON.parse(await response.text());
  return {
    status: response.status,
    problem: json.type?.split(':').at(-1),
    retryAfter: response.headers.get('retry-after'),
    json,
  };
}

const sql = async (text: string) => (await one.get(Database).pool.query(text)).rows;

/** Lets a minute pass for what is to be told, and has both processes tell it. */
async function aMinuteLater(): Promise<{ source: string; outcome: string; keyId: string }[]> {
  // A sweep passes over what another one has locked.
  await until('all is told', async () => {
    await Promise.all([one, other].map((app) => app.get(FailedAttempts).flush()));
    await sql(`UPDATE failed_attempts SET untold_since = untold_since - interval '1 minute' WHERE untold > 0`);
    await Promise.all([one, other].map((app) => app.get(FailedAttempts).sweep()));
    return (await sql('SELECT 1 FROM failed_attempts WHERE untold > 0')).length === 0;
  });
  return (await call(ADMIN_KEY, { path: '/v1/audit?action=authentication.failed' })).json.items;
}

test('5,000 wrong keys from one source are locked out in every process, others and good keys are not', async () => {
  const begun = performance.now();
  const answers = new Map<string, number>();
  let left = ATTEMPTS;
  const attack = async () => {
    for (let attempt = left--; attempt > 0; attempt = left--) {
      const { status, problem, retryAfter } = await call(wrongKey(), { on: attempt % 2 ? one : other });
      const wait = retryAfter === null ? '' : Number(retryAfter) > 0 && Number(retryAfter) <= LOCKOUT_SECONDS + 1;
      const answer = `${status} ${problem} ${wait}`;
      answers.set(answer, (answers.get(answer) ?? 0) + 1);
    }
  };
  await Promise.all(Array.from({ length: AT_ONCE }, attack));
  expect([...answers.keys()].sort()).toEqual(['401 unauthenticated ', '429 too-many-failures true']);
  const lockouts = 1 + Math.floor((performance.now() - begun) / (LOCKOUT_SECONDS * 1_000));
  expect(answers.get('401 unauthenticated ')).toBeLessThan(lockouts * MOST_FAILURES);

  const body = { name: 'a key', scopes: ['admin'] };
  const { key } = (await call(ADMIN_KEY, { path: '/v1/api-keys', body })).json;
  for (const on of [one, other]) {
    expect(await call(wrongKey(), { on })).toMatchObject({ status: 429, problem: 'too-many-failures' });
    expect(await call('malformed', { on })).toMatchObject({ status: 429 });
    expect(await call(key, { on })).toMatchObject({ status: 200 });
    expect(await call(wrongKey(), { on, from: '203.0.113.9' })).toMatchObject({ status: 401 });
    expect(await call(key, { on, from: '203.0.113.9' })).toMatchObject({ status: 200 });
  }
  expect((await sql("SELECT count(*)::int AS n FROM failed_attempts WHERE kind = 'source'"))[0].n).toBe(2);

  const told = await aMinuteLater();
  const minutes = Math.floor((performance.now() - begun) / 60_000);
  for (const [source, failures] of [
    [ATTACKER, ATTEMPTS + 4],
    ['203.0.113.9', 2],
  ]) {
    const entries = told.filter((entry) => entry.source === source && entry.keyId === 'unknown');
    expect(entries.length).toBeGreaterThan(0);
    expect(entries.length).toBeLessThanOrEqual(1 + minutes);
    expect(entries.reduce((sum, { outcome }) => sum + Number.parseInt(outcome, 10), 0)).toBe(failures);
  }
  expect(await aMinuteLater()).toHaveLength(told.length);
});

test('wrong session cookies are counted with wrong keys, and neither sessions nor keys that are good are refused', async () => {
  const [from, headers] = ['198.51.100.8', { authorization: `Bearer ${ADMIN_KEY}` }];
  const url = `${await one.getUrl()}/v1/browser-session`;
  const opened = await fetch(url, { method: 'POST', headers });
  const good = opened.headers.get('set-cookie')?.split(';')[0] ?? '';
  const read = (cookie: string) => fetch(url, { headers: { cookie, 'x-forwarded-for': from } });
  const wrong = () => read(`__Host-notebridge_session=${randomBytes(32).toString('base64url')}`);
  expect((await read(good)).status).toBe(200);
  const first = await wrong();
  // A late answer to a session that has ended must not remove the cookie of one that was opened meanwhile.
  expect([first.status, first.headers.get('set-cookie')]).toEqual([401, null]);
  const statuses = await Promise.all(Array.from({ length: 100 }, async () => (await wrong()).status));
  expect(statuses.filter((status) => status === 429).length).toBeGreaterThan(100 - MOST_FAILURES);
  expect((await wrong()).status).toBe(429);
  expect((await read(good)).status).toBe(200);
  expect(await call(ADMIN_KEY, { from })).toMatchObject({ status: 200 });
  expect((await read('')).status).toBe(401);
  const told = (await aMinuteLater()).filter(({ source }) => source === from);
  expect(told.reduce((sum, { outcome }) => sum + Number.parseInt(outcome, 10), 0)).toBe(102);
});

test('wrong keys that begin alike are locked out wherever they come from, and the good one is not', async () => {
  const { key, prefix } = (await call(ADMIN_KEY, { body: { name: 'a key', scopes: ['admin'] } })).json;
  const guess = async (_: unknown, i: number) => {
    const wrong =
      prefix +
      randomBytes(32)
        .toString('base64url')
        .slice(0, key.length - prefix.length);
    return (await call(wrong, { from: `2001:db8:${i.toString(16)}::1`, on: i % 2 ? one : other })).status;
  };
  expect(await guess(undefined, 0)).toBe(401);
  await Promise.all(Array.from({ length: MOST_FAILURES }, guess));
  expect(await Promise.all([100, 101].map((i) => guess(undefined, i)))).toEqual([429, 429]);
  expect(await call(key, { from: '2001:db8:ffff::1' })).toMatchObject({ status: 200 });
});

test('a lock ends, and its row goes once it is told', async () => {
  await sql('UPDATE failed_attempts SET ends_at = clock_timestamp()');
  const fresh = await start();
  try {
    expect(await call(wrongKey(), { on: fresh })).toMatchObject({ status: 401 });
  } finally {
    await fresh.close();
  }
  await aMinuteLater();
  await sql('UPDATE failed_attempts SET ends_at = clock_timestamp()');
  await aMinuteLater();
  expect(await sql('SELECT * FROM failed_attempts')).toEqual([]);
});

test('sources beyond what a process keeps are counted together', async () => {
  const attempts = one.get(FailedAttempts);
  const source = (i: number) => `2001:db8:${(i >> 8).toString(16)}:${(i & 255).toString(16)}::1`;
  await Promise.allSettled(
    Array.from({ length: 12_000 }, (_, i) => attempts.refuse(source(i), undefined, new Problem(401, 'x', 'X.'))),
  );
  const counted = await until('all are counted', async () => {
    await attempts.flush();
    const [row] = await sql('SELECT count(*)::int AS rows, sum(failures)::int AS failures FROM failed_attempts');
    return row.rows > 0 && row;
  });
  expect(counted).toEqual({ rows: 10_001, failures: 12_000 });
});
