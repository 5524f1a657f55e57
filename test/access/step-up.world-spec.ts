import { Clock } from '../../src/config/clock.js';
import { ADMIN_KEY } from '../support/app.js';
import { HttpBrowser, useOpenId } from '../support/openid.js';

const { world, provider } = useOpenId();

const ID = '7d0f4a52-8f1c-4f0e-9c4b-0d1c5a3f6e21';
const REASON = { 'notebridge-purpose': 'TICKET-1042' };
const TOO_OLD = '301 s';

/** Every operation that needs a step-up, with the body that makes it need one; null: the same with a harmless body does not. */
const TABLE: [operation: string, body?: object, harmless?: object][] = [
  ['POST /v1/api-keys', { name: 'made', scopes: ['operations'] }],
  [`POST /v1/api-keys/${ID}/rotate`, {}],
  ['GET /v1/clients/C-1/export'],
  ['DELETE /v1/clients/C-1'],
  ['DELETE /v1/providers/P-1'],
  ['POST /v1/clients/C-1/resolve', { action: 'delete' }, { action: 'retry' }],
  ['POST /v1/providers/P-1/resolve', { action: 'delete' }, { action: 'retry' }],
  ['POST /v1/clients/C-1/merge', { into: 'C-2' }],
  ['POST /v1/subscriptions', { url: 'http://127.0.0.1:9/hook' }],
  [`PATCH /v1/subscriptions/${ID}`, { after: '0' }, { paused: true }],
  [`PATCH /v1/subscriptions/${ID}`, { headers: null }, { paused: true }],
  [`POST /v1/subscriptions/${ID}/rotate-secret`],
  [`POST /v1/imports/${ID}/apply`, { override: ['deletes'] }, {}],
];

const ask = (browser: HttpBrowser, operation: string, body?: object, headers?: Record<string, string>) => {
  const [method = '', path = ''] = operation.split(' ');
  return browser.ask(method, path, { body, headers });
};

async function signedIn(): Promise<HttpBrowser> {
  const browser = new HttpBrowser(world.url);
  expect((await browser.signIn('ada')).headers.get('location')).toBe('/console');
  return browser;
}

async function signedInByKey(): Promise<HttpBrowser> {
  const browser = new HttpBrowser(world.url);
  const headers = { authorization: `Bearer ${ADMIN_KEY}` };
  expect((await browser.go('/v1/browser-session', { method: 'POST', headers })).status).toBe(201);
  return browser;
}

/** True if access was granted: the operations fail later, because nothing in the world has these ids. */
const isGranted = (problem?: string) => problem !== 'step-up-required' && problem !== 'purpose-required';

test.each(TABLE)(
  '%s needs a recent sign-in and a reason in a browser session, and neither with a key',
  async (...row) => {
    const [operation, body, harmless] = row;
    const ada = await signedIn();
    expect(await ask(ada, operation, body)).toMatchObject({ status: 400, problem: 'purpose-required' });
    expect(isGranted((await ask(ada, operation, body, REASON)).problem)).toBe(true);
    await world.advance(TOO_OLD);
    expect(await ask(ada, operation, body, REASON)).toMatchObject({ status: 403, problem: 'step-up-required' });
    if (harmless) expect(isGranted((await ask(ada, operation, harmless)).problem)).toBe(true);
    const [method = '', path = ''] = operation.split(' ');
    const { text } = await world.call(method, path, { body });
    expect(text).not.toMatch(/step-up-required|purpose-required/);
  },
);

test('the table has every operation that OpenAPI describes so', async () => {
  const { body } = await world.call<{ paths: Record<string, Record<string, object>> }>('GET', '/openapi.json');
  const described = Object.entries(body.paths).flatMap(([path, methods]) =>
    Object.entries(methods)
      .filter(([, operation]) => 'x-step-up' in operation)
      .map(([method]) => `${method.toUpperCase()} ${path.replaceAll(/\{\w+\}/g, '*')}`),
  );
  const named = TABLE.map(([operation]) => operation.replace(ID, '*').replace(/[CP]-1/, '*'));
  expect(described.sort()).toEqual([...new Set(named)].sort());
});

test('a person confirms by signing in again, and the audit log keeps the reason', async () => {
  const ada = await signedIn();
  await world.advance(TOO_OLD);
  const body = { name: 'made', scopes: ['operations'] };
  expect((await ask(ada, 'POST /v1/api-keys', body, REASON)).problem).toBe('step-up-required');
  expect(await ask(ada, 'POST /v1/browser-session/step-up', { key: ADMIN_KEY })).toMatchObject({
    ...{ status: 409, problem: 'confirm-at-provider' },
  });
  expect((await ada.signIn('ada', '?fresh=true')).headers.get('location')).toBe('/console');
  expect((await ask(ada, 'POST /v1/api-keys', body, REASON)).status).toBe(201);
  const { items } = (
    await world.call<{ items: object[] }>('GET', `/v1/audit?action=${encodeURIComponent('POST /v1/api-keys')}`)
  ).body;
  expect(items).toMatchObject([
    { keyName: 'Ada Osei', outcome: 'ok', purpose: 'TICKET-1042' },
    { keyName: 'Ada Osei', outcome: 'step-up-required', purpose: 'TICKET-1042' },
  ]);
});

test('a sign-in without a new authentication confirms no one', async () => {
  const ada = await signedIn();
  const hourAgo = new Date(Date.now() - 3_600_000);
  provider.people.set('ada', { name: 'Ada Osei', groups: ['admins'], authenticatedAt: hourAgo });
  expect((await ada.signIn('ada', '?fresh=true')).headers.get('location')).toContain('refused=provider-refused');
  const other = await signedIn();
  expect((await ask(other, 'POST /v1/api-keys', {}, REASON)).problem).toBe('step-up-required');
});

test('a provider whose clock is ahead confirms for five minutes', async () => {
  const inAnHour = new Date(world.now().getTime() + 3_600_000);
  provider.people.set('ada', { name: 'Ada Osei', groups: ['admins'], authenticatedAt: inAnHour });
  const ada = await signedIn();
  await world.advance(TOO_OLD);
  expect((await ask(ada, 'POST /v1/api-keys', {}, REASON)).problem).toBe('step-up-required');
});

test('a sign-in confirms by the clock of the database, also in a process whose own is ahead', async () => {
  jest.spyOn(world.get(Clock), 'now').mockReturnValue(new Date(world.now().getTime() + 600_000));
  expect(isGranted((await ask(await signedInByKey(), 'POST /v1/api-keys', {}, REASON)).problem)).toBe(true);
});

test('entering the key again confirms a change', async () => {
  const mine = await signedInByKey();
  await world.advance(TOO_OLD);
  const body = { name: 'made', scopes: ['operations'] };
  expect((await ask(mine, 'POST /v1/api-keys', body, REASON)).problem).toBe('step-up-required');
  expect((await ask(mine, 'POST /v1/browser-session/step-up', { key: 'nb_wrong' })).problem).toBe('wrong-key');
  expect((await ask(mine, 'POST /v1/api-keys', body, REASON)).problem).toBe('step-up-required');
  expect((await ask(mine, 'POST /v1/browser-session/step-up', { key: ADMIN_KEY })).status).toBe(200);
  expect((await ask(mine, 'POST /v1/api-keys', body, REASON)).status).toBe(201);
  await world.advance(TOO_OLD);
  expect((await ask(mine, 'POST /v1/api-keys', body, REASON)).problem).toBe('step-up-required');
});
