import { randomBytes } from 'node:crypto';
import { Logger } from '@nestjs/common';
import type { WorldService } from '../../harness/world/world-service.js';
import type { NewApiKeyResponse } from '../../src/access/keys/api-keys.dto.js';
import { ADMIN_KEY } from '../support/app.js';
import { deliver, sessionEvent, signed } from '../support/webhook-requests.js';
import { useWorld } from '../world/use-world.js';

/** How many unknown keys of one address may reach the database in a second. */
const LOOKUPS_PER_SECOND = 5;

const world = useWorld();

const bearer = (key: string) => ({ authorization: `Bearer ${key}` });
const unknownKey = () => `nb_${randomBytes(32).toString('base64url')}`;
const from = (source: string) => ({ 'x-forwarded-for': source });
const times = <T>(count: number, request: (index: number) => Promise<T>) =>
  Promise.all(Array.from({ length: count }, (_, index) => request(index)));

async function statusOf(path: string, headers: Record<string, string>, { url }: { url: string } = world) {
  const { status } = await fetch(url + path, { headers });
  return status;
}

/** Sends requests at the same time. @returns how often each status was answered, and how many windows of a second they met */
async function flood(count: number, request: (index: number) => Promise<number>) {
  const begun = Date.now();
  const statuses = await times(count, request);
  const seconds = Math.floor((Date.now() - begun) / 1_000) + 2; // an earlier request may have begun the first one
  const of = (status: number) => statuses.filter((each) => each === status).length;
  return { of, seconds };
}

async function newKey(service: Pick<WorldService, 'url'>): Promise<string> {
  const headers = { ...bearer(ADMIN_KEY), 'content-type': 'application/json' };
  const body = JSON.stringify({ name: 'a key', scopes: ['people:read'] });
  const answer = await fetch(`${service.url}/v1/api-keys`, { method: 'POST', headers, body });
  return ((await answer.json()) as NewApiKeyResponse).key;
}

describe('unknown keys of one address', () => {
  it('are refused with 429 before the database is asked, except five a second', async () => {
    const { of, seconds } = await flood(300, () => statusOf('/v1/capabilities', bearer(unknownKey())));
    expect(of(401)).toBeGreaterThan(0);
    expect(of(401)).toBeLessThanOrEqual(LOOKUPS_PER_SECOND * seconds);
    expect(of(401) + of(429)).toBe(300);
  });

  it.each([
    ['Prefer: wait', { prefer: 'wait=60' }],
    ['a forwarded address of an untrusted proxy', from('203.0.113.9')],
  ])('are limited whatever they send: %s', async (_, headers) => {
    const { of, seconds } = await flood(60, () => statusOf('/v1/events', { ...bearer(unknownKey()), ...headers }));
    expect(of(401)).toBeLessThanOrEqual(LOOKUPS_PER_SECOND * seconds);
    expect(of(401) + of(429)).toBe(60);
  });

  it('leave valid keys and sessions of the same address alone', async () => {
    const key = await newKey(world);
    const opened = await fetch(`${world.url}/v1/browser-session`, { method: 'POST', headers: bearer(ADMIN_KEY) });
    const cookie = opened.headers.get('set-cookie')?.split(';')[0] ?? '';
    const [, valid, session, deliveries] = await Promise.all([
      flood(300, () => statusOf('/v1/capabilities', bearer(unknownKey()))),
      flood(30, () => statusOf('/v1/capabilities', bearer(key))),
      flood(30, () => statusOf('/v1/capabilities', { cookie })),
      flood(30, async (at) => (await deliver(world, signed(sessionEvent(`s-${at}`)))).status),
    ]);
    expect([valid.of(200), session.of(200), deliveries.of(204)]).toEqual([30, 30, 30]);
  });

  it('include wrong session cookies', async () => {
    const wrong = () => ({ cookie: `__Host-notebridge_session=${randomBytes(32).toString('base64url')}` });
    const { of, seconds } = await flood(60, () => statusOf('/v1/capabilities', wrong()));
    expect(of(401)).toBeLessThanOrEqual(LOOKUPS_PER_SECOND * seconds);
    expect(of(401) + of(429)).toBe(60);
  });

  it('do not count against other addresses', async () => {
    const service = await world.startAnother({ TRUSTED_PROXIES: '127.0.0.1' });
    const ask = (source: string) => statusOf('/v1/capabilities', { ...bearer(unknownKey()), ...from(source) }, service);
    const [near] = await Promise.all([flood(60, () => ask('198.51.100.7'))]);
    expect(near.of(429)).toBeGreaterThan(0);
    expect(await ask('203.0.113.9')).toBe(401);
  });

  it('do not keep out a key that another process has just created', async () => {
    const another = await world.startAnother();
    const key = await newKey(another);
    await flood(60, () => statusOf('/v1/capabilities', bearer(unknownKey())));
    await world.advance('5 s');
    await world.eventually('the key is known', async () => (await statusOf('/v1/capabilities', bearer(key))) === 200);
    const [, valid] = await Promise.all([
      flood(60, () => statusOf('/v1/capabilities', bearer(unknownKey()))),
      flood(20, () => statusOf('/v1/capabilities', bearer(key))),
    ]);
    expect(valid.of(200)).toBe(20);
  });

  it('do not keep out known keys while those cannot be reloaded, which the log says', async () => {
    const key = await newKey(world);
    const warned = jest.spyOn(Logger.prototype, 'warn');
    await world.sql('ALTER TABLE browser_sessions RENAME TO browser_sessions_away');
    await world.advance('5 s');
    await world.eventually('the log says it', () =>
      Promise.resolve(
        warned.mock.calls.some(([text]) => String(text).startsWith('the valid keys could not be reloaded')),
      ),
    );
    const [, valid] = await Promise.all([
      flood(60, () => statusOf('/v1/capabilities', bearer(unknownKey()))),
      flood(20, () => statusOf('/v1/capabilities', bearer(key))),
    ]);
    await world.sql('ALTER TABLE browser_sessions_away RENAME TO browser_sessions');
    warned.mockRestore();
    expect(valid.of(200)).toBe(20);
  });
});

describe('the requests of a valid key', () => {
  it('have a limit of their own, which no header lifts', async () => {
    const LIMIT = 10;
    const service = await world.startAnother({ KEY_REQUESTS_PER_SECOND: String(LIMIT) });
    const [one, other] = [await newKey(service), await newKey(service)];
    const HEADERS: Record<string, string>[] = [{}, { prefer: 'wait=1' }, from('203.0.113.9')];
    const { of, seconds } = await flood(80, (at) =>
      statusOf('/v1/capabilities', { ...bearer(one), ...HEADERS[at % HEADERS.length] }, service),
    );
    expect(of(200)).toBeGreaterThan(0);
    expect(of(200)).toBeLessThanOrEqual(LIMIT * seconds);
    expect(of(200) + of(429)).toBe(80);
    expect(await statusOf('/v1/capabilities', bearer(other), service)).toBe(200);
  });

  it('are told when to come again', async () => {
    const service = await world.startAnother({ KEY_REQUESTS_PER_SECOND: '1' });
    const answers = await times(20, () => fetch(`${service.url}/v1/capabilities`, { headers: bearer(ADMIN_KEY) }));
    const refused = answers.find(({ status }) => status === 429);
    expect(refused?.headers.get('retry-after')).toBe('1');
    expect(await refused?.json()).toMatchObject({ type: 'urn:notebridge:problem:too-many-requests', status: 429 });
  });
});

describe('requests without a key', () => {
  it('are limited by address, also on unknown routes', async () => {
    const { of } = await flood(250, () => statusOf('/nowhere', {}));
    expect(of(429)).toBeGreaterThan(0);
    expect(of(404) + of(429)).toBe(250);
  });

  it('are not limited on health and the receiver', async () => {
    const health = await flood(150, () => statusOf('/health/live', bearer(unknownKey())));
    const receiver = await flood(150, async () => (await deliver(world, { method: 'POST', body: 'x' })).status);
    expect([health.of(200), receiver.of(401)]).toEqual([150, 150]);
  });
});
