import { readFileSync } from 'node:fs';
import path from 'node:path';
import { API_TYPES, writeApiTypes } from '../scripts/api-types.mjs';
import type { NewApiKeyResponse } from '../src/access/keys/api-keys.dto.js';
import { ADMIN_KEY } from './support/app.js';
import { describeInBrowser, signIn, UNSAFE_HOST, useBrowser } from './support/browser.js';
import { useSharedService } from './support/shared-service.js';
import { answerTo } from './support/webhook-requests.js';

const shared = useSharedService();

const bearer = { authorization: `Bearer ${ADMIN_KEY}` };

async function session(): Promise<{ cookie: string; csrfToken: string }> {
  const answer = await answerTo(`${shared.service.url}/v1/browser-session`, { method: 'POST', headers: bearer });
  const cookie = answer.headers.get('set-cookie') ?? '';
  expect(cookie).toMatch(/^__Host-notebridge_session=[^;]+; Path=\/; HttpOnly; Secure; SameSite=Strict$/);
  const { csrfToken } = (await answer.json()) as { csrfToken: string };
  return { cookie: cookie.split(';')[0] ?? '', csrfToken };
}

const ask = async (method: string, place: string, headers: Record<string, string>) =>
  (await answerTo(`${shared.service.url}${place}`, { method, headers })).status;

describe('a browser session', () => {
  it('reads by its cookie, and changes only with its token against forged requests', async () => {
    const { cookie, csrfToken } = await session();
    expect(await ask('GET', '/v1/api-keys', { cookie })).toBe(200);
    expect(await ask('DELETE', '/v1/browser-session', { cookie })).toBe(403);
    expect(await ask('DELETE', '/v1/browser-session', { cookie, 'x-csrf-token': 'x' })).toBe(403);
    expect(await ask('GET', '/v1/api-keys', { cookie, 'sec-fetch-site': 'cross-site' })).toBe(403);
    expect(await ask('DELETE', '/v1/browser-session', { cookie, 'x-csrf-token': csrfToken })).toBe(204);
    expect(await ask('GET', '/v1/api-keys', { cookie })).toBe(401);
  });

  it('ends by itself, and its token stands nowhere', async () => {
    const { cookie } = await session();
    const token = cookie.split('=')[1] ?? '';
    const rows = await shared.mirror.sql<{ row: string }>('SELECT browser_sessions::text AS row FROM browser_sessions');
    expect(rows.length).toBeGreaterThan(0);
    expect(rows.some(({ row }) => row.includes(Buffer.from(token).toString('hex')) || row.includes(token))).toBe(false);
    await shared.mirror.sql(`UPDATE browser_sessions SET expires_at = now() - interval '1 second'`);
    expect(await ask('GET', '/v1/api-keys', { cookie })).toBe(401);
  });

  it('goes, the oldest of its key first, when there are too many, and is removed when it has ended', async () => {
    await shared.mirror.sql(`UPDATE browser_sessions SET expires_at = now() - interval '1 second'`);
    const { cookie } = await session();
    await Promise.all(Array.from({ length: 30 }, session));
    expect(await ask('GET', '/v1/api-keys', { cookie })).toBe(401);
    expect(await shared.mirror.sql('SELECT count(*)::int AS rows FROM browser_sessions')).toEqual([{ rows: 20 }]);
  });
});

test('the root leads a browser to the console, and tells a program where everything is', async () => {
  const program = await shared.service.call<Record<string, unknown>>('GET', '/');
  expect(program.body).toMatchObject({ name: 'notebridge', docs: '/docs', console: '/console' });
  const browser = await fetch(shared.service.url, { headers: { accept: 'text/html,*/*' }, redirect: 'manual' });
  expect([browser.status, browser.headers.get('location')]).toEqual([302, '/console']);
});

test('a file of the console that is not there is a 404, whatever its name', async () => {
  for (const name of ['none.js', '..%2findex.html', '..%2f..%2f..%2fpackage.json', '%00'])
    expect([name, await ask('GET', `/console/assets/${name}`, {})]).toEqual([name, 404]);
});

test('the types of the console are those of the API', async () => {
  const made = path.join(process.cwd(), '.data/api-types.d.ts');
  await writeApiTypes(shared.service.url, made);
  const [now, committed] = [made, API_TYPES].map((file) => readFileSync(file, 'utf8'));
  if (now !== committed) throw new Error(`${API_TYPES} is not of this API: npm run api-types -- URL writes it anew.`);
});

describeInBrowser('the console', () => {
  const browser = useBrowser();
  const newKey = async (...scopes: string[]) =>
    (await shared.service.call<NewApiKeyResponse>('POST', '/v1/api-keys', { body: { name: 'browser', scopes } })).body;

  it('says that a key is not known, and lets somebody in with a good one, until he signs out', async () => {
    const page = await browser.enter(shared.service.url);
    await signIn(page, 'nb_wrong');
    const refusal = page.getByRole('alert').getByText('The key is not known');
    await refusal.waitFor();
    // As the list of keys shows the beginning of one: no header can carry it.
    await page.reload();
    await signIn(page, 'nb_-O_gFe…');
    await page.getByRole('alert').waitFor();
    expect(await refusal.count()).toBe(1);
    await signIn(page, ADMIN_KEY);
    await page.getByRole('heading', { name: 'Overview' }).waitFor();
    await page.getByRole('button', { name: 'Sign out' }).click();
    await page.getByLabel('API key').waitFor();
    await page.goto('/console/keys');
    await page.getByLabel('API key').waitFor();
    await signIn(page, ADMIN_KEY);
    await page.getByRole('heading', { name: 'Keys' }).waitFor();
  });

  it('says so when the browser refuses the cookie, as Safari does by http on the machine itself', async () => {
    const page = await browser.enter(shared.service.url.replace('127.0.0.1', UNSAFE_HOST));
    await signIn(page, ADMIN_KEY);
    await page.getByRole('alert').getByText('this browser did not keep the session').waitFor();
  });

  it('opens a page whose script did not come once the service is there again', async () => {
    const page = await browser.open(shared.service.url, '/people');
    const script = '**/assets/audit-page-*.js';
    await page.route(script, (route) => route.abort());
    await page.getByRole('link', { name: 'Audit' }).click();
    const alert = page.getByRole('alert');
    await alert.waitFor();
    expect(await alert.locator('p').textContent()).toBe(
      'This part of the console could not be loaded: the service is away, or was upgraded.',
    );
    await page.unroute(script);
    await page.getByRole('button', { name: 'Try again' }).click();
    await page.getByRole('heading', { name: 'Audit' }).waitFor();
  });

  it('says how long ago something was by the clock of now, also while it is paused', async () => {
    const expiresAt = new Date(Date.now() + 10 * 60_000).toISOString();
    await shared.service.call('POST', '/v1/api-keys', { body: { name: 'brief', scopes: ['operations'], expiresAt } });
    const page = await browser.open(shared.service.url);
    await page.clock.install();
    await page.goto('/console/keys');
    const row = page.getByRole('row').filter({ hasText: 'brief' });
    await row.getByText('in use').waitFor();
    await page.getByRole('button', { name: 'Live' }).click();
    await page.clock.runFor('15:00');
    await row.getByText(/^\d\d minutes ago$/).waitFor();
    await row.getByText('expired').waitFor();
  });

  it('asks for nothing while it is paused', async () => {
    const page = await browser.open(shared.service.url);
    await page.clock.install();
    await page.goto('/console/deliveries');
    await page.getByText('Nothing was delivered yet').waitFor();
    const asked = page.waitForRequest(/webhook-deliveries/);
    await page.clock.runFor('01:00');
    await asked;
    await page.getByRole('button', { name: 'Live' }).click();
    const requests: string[] = [];
    page.on('request', (request) => requests.push(request.url()));
    await page.clock.runFor('01:00');
    await page.evaluate(`dispatchEvent(new Event('visibilitychange'))`);
    expect(requests).toEqual([]);
    const askedAgain = page.waitForRequest(/webhook-deliveries/);
    await page.getByRole('button', { name: 'Paused' }).click();
    await askedAgain;
  });

  it('shows a key only what its scopes allow, and signs it out when it is revoked', async () => {
    const { key, id } = await newKey('operations');
    const page = await browser.open(shared.service.url, '/keys', key);
    await page.getByText('This key lacks the scope admin').waitFor();
    await page.getByRole('button', { name: 'Live' }).waitFor();
    expect(await ask('DELETE', `/v1/api-keys/${id}`, bearer)).toBe(204);
    await page.getByText('sign in again').waitFor();
  });

  it('keeps a key that is shown once until somebody says that he has it', async () => {
    const page = await browser.open(shared.service.url, '/keys');
    await page.getByRole('button', { name: 'Make a key' }).click();
    const dialog = page.getByRole('dialog');
    await page.getByLabel('Name').fill('kept');
    await page.getByLabel('operations').check();
    await dialog.getByRole('button', { name: 'Make a key' }).click();
    const key = dialog.getByText(/^nb_/);
    await key.waitFor();
    for (let times = 0; times < 3; times++) {
      await page.keyboard.press('Escape');
      expect(await key.isVisible()).toBe(true);
    }
    await page.getByRole('button', { name: 'I have it' }).click();
    await key.waitFor({ state: 'detached' });
  });

  it('names a field that is refused as the form does', async () => {
    const page = await browser.open(shared.service.url, '/keys');
    await page.getByRole('button', { name: 'Make a key' }).click();
    await page.getByLabel('Name').fill('late');
    await page.getByLabel('operations').check();
    await page.getByLabel('Expires').fill('2020-01-31T08:00');
    await page.getByRole('dialog').getByRole('button', { name: 'Make a key' }).click();
    expect(await page.getByRole('alert').textContent()).toBe(
      'The field “Expires (empty: never)” is not acceptable: must lie in the future.',
    );
  });

  it('makes, rotates and revokes a key', async () => {
    const page = await browser.open(shared.service.url, '/keys');
    await page.getByRole('button', { name: 'Make a key' }).click();
    await page.getByLabel('Name').fill('on-call');
    const confirm = (name: string) => page.getByRole('dialog').getByRole('button', { name }).click();
    await confirm('Make a key');
    await page.getByText('Choose at least one scope.').waitFor();
    await page.getByLabel('operations').check();
    await confirm('Make a key');
    await page.getByText('It is shown this once').waitFor();
    const made = await page.getByRole('dialog').locator('code').textContent();
    expect(await ask('GET', '/v1/capabilities', { authorization: `Bearer ${made}` })).toBe(200);
    await page.getByRole('button', { name: 'I have it' }).click();
    const row = page.getByRole('row').filter({ hasText: 'on-call' });
    await row.getByRole('button', { name: 'Rotate' }).click();
    await page.getByLabel('The old key ends').selectOption('at once');
    await confirm('Rotate');
    await page.getByRole('button', { name: 'I have it' }).click();
    expect(await ask('GET', '/v1/capabilities', { authorization: `Bearer ${made}` })).toBe(401);
    await row.getByRole('button', { name: 'Revoke' }).first().click();
    await confirm('Revoke');
    await row.getByText('revoked').waitFor();
  });
});
