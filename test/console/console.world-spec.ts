import { ADMIN_KEY } from '../support/app.js';
import { describeInBrowser, giveReason, signIn, UNSAFE_HOST, useBrowser } from '../support/browser.js';
import { useWorld } from '../world/use-world.js';

const world = useWorld();

const bearer = (key: string | null = ADMIN_KEY) => ({ authorization: `Bearer ${key}` });

async function newSession(): Promise<{ cookie: string; csrfToken: string }> {
  const answer = await fetch(`${world.url}/v1/browser-session`, { method: 'POST', headers: bearer() });
  const cookie = answer.headers.get('set-cookie') ?? '';
  expect(cookie).toMatch(/^__Host-notebridge_session=[^;]+; Path=\/; HttpOnly; Secure; SameSite=Strict$/);
  const { csrfToken } = (await answer.json()) as { csrfToken: string };
  return { cookie: cookie.split(';')[0] ?? '', csrfToken };
}

const ask = async (method: string, place: string, headers: Record<string, string>) =>
  (await fetch(world.url + place, { method, headers })).status;

describe('a browser session', () => {
  test('reads with its cookie, and writes only with its CSRF token', async () => {
    const { cookie, csrfToken } = await newSession();
    expect(await ask('GET', '/v1/api-keys', { cookie })).toBe(200);
    expect(await ask('DELETE', '/v1/browser-session', { cookie })).toBe(403);
    expect(await ask('DELETE', '/v1/browser-session', { cookie, 'x-csrf-token': 'x' })).toBe(403);
    expect(await ask('GET', '/v1/api-keys', { cookie, 'sec-fetch-site': 'cross-site' })).toBe(403);
    expect(await ask('DELETE', '/v1/browser-session', { cookie, 'x-csrf-token': csrfToken })).toBe(204);
    expect(await ask('GET', '/v1/api-keys', { cookie })).toBe(401);
  });

  test('expires; its token is not stored', async () => {
    const { cookie } = await newSession();
    const token = cookie.split('=')[1] ?? '';
    const rows = await world.sql<{ row: string }>('SELECT browser_sessions::text AS row FROM browser_sessions');
    expect(rows).toHaveLength(1);
    expect(rows.some(({ row }) => row.includes(Buffer.from(token).toString('hex')) || row.includes(token))).toBe(false);
    await world.advance('1 d');
    expect(await ask('GET', '/v1/api-keys', { cookie })).toBe(401);
  });

  test('replaces the oldest of too many of its key; ended ones are removed', async () => {
    await newSession();
    await world.advance('1 d');
    const { cookie } = await newSession();
    await world.advance('1 ms');
    await Promise.all(Array.from({ length: 30 }, newSession));
    expect(await ask('GET', '/v1/api-keys', { cookie })).toBe(401);
    expect(await world.sql('SELECT count(*)::int AS rows FROM browser_sessions')).toEqual([{ rows: 20 }]);
  });
});

test('the root redirects a browser to the console, and lists the addresses for a program', async () => {
  const { body } = await world.call<object>('GET', '/');
  expect(body).toMatchObject({ name: 'notebridge', docs: '/docs', console: '/console' });
  const browser = await fetch(world.url, { headers: { accept: 'text/html,*/*' }, redirect: 'manual' });
  expect([browser.status, browser.headers.get('location')]).toEqual([302, '/console']);
});

test('unknown files of the console answer 404', async () => {
  for (const name of ['none.js', '..%2findex.html', '..%2f..%2f..%2fpackage.json', '%00'])
    expect([name, await ask('GET', `/console/assets/${name}`, {})]).toEqual([name, 404]);
});

describeInBrowser('the console', () => {
  const browser = useBrowser();

  test('rejects an unknown key, and accepts a good one until the sign-out', async () => {
    const page = await browser.enter(world.url);
    await signIn(page, 'nb_wrong');
    const refusal = page.getByRole('alert').getByText('The key is unknown');
    await refusal.waitFor();
    // The list of keys shows the beginning of a key like this; no header can carry it.
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

  test('says that the browser refused the cookie, as Safari does for http', async () => {
    const page = await browser.enter(world.url.replace('127.0.0.1', UNSAFE_HOST));
    await signIn(page, ADMIN_KEY);
    await page.getByRole('alert').getByText('this browser accepts no cookies over http').waitFor();
  });

  test('opens a page whose script failed to load when asked again', async () => {
    const page = await browser.open(world.url, '/people');
    const script = '**/assets/audit-page-*.js';
    await page.route(script, (route) => route.abort());
    await page.getByRole('link', { name: 'Audit' }).click();
    const alert = page.getByRole('alert');
    await alert.waitFor();
    expect(await alert.locator('p').textContent()).toBe(
      'This part of the console could not be loaded, because the service is down or was upgraded. Reload the page.',
    );
    await page.unroute(script);
    await page.getByRole('button', { name: 'Try again' }).click();
    await page.getByRole('heading', { name: 'Audit' }).waitFor();
  });

  test('shows ages by the current time, even while it is paused', async () => {
    const expiresAt = new Date(world.now().getTime() + 10 * 60_000).toISOString();
    await world.call('POST', '/v1/api-keys', { body: { name: 'brief', scopes: ['operations'], expiresAt } });
    const page = await browser.enter(world.url);
    await page.clock.install({ time: world.now() });
    await signIn(page, ADMIN_KEY);
    await page.getByRole('link', { name: 'Keys' }).click();
    const row = page.getByRole('row').filter({ hasText: 'brief' });
    await row.getByText('in use').waitFor();
    await page.getByRole('button', { name: 'Live' }).click();
    await page.clock.runFor('15:00');
    await row.getByText(/^\d\d minutes ago$/).waitFor();
    await row.getByText('expired').waitFor();
  });

  test('sends no request while it is paused, even if the clock of the browser is weeks behind', async () => {
    const page = await browser.open(world.url);
    // A clock ahead of the sign-in would sign the browser out as unused.
    const now = Math.min(Number(await page.evaluate('Date.now()')), world.now().getTime());
    await page.clock.install({ time: now - 40 * 86_400_000 });
    await page.goto('/console/deliveries');
    await page.getByText('No webhook has arrived yet').waitFor();
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

  test('makes, rotates and revokes a key, which stays shown until it is confirmed', async () => {
    const page = await browser.open(world.url, '/keys');
    const dialog = page.getByRole('dialog');
    const confirm = (name: string) => dialog.getByRole('button', { name }).click();
    await page.getByRole('button', { name: 'Create key' }).click();
    await page.getByLabel('Name').fill('on-call');
    await confirm('Create key');
    await page.getByText('Choose at least one scope.').waitFor();
    await page.getByLabel('operations').check();
    await page.getByLabel('Expires').fill('2020-01-31T08:00');
    await confirm('Create key');
    await giveReason(page);
    // The page still shows the earlier error until the answer is there.
    await page.getByText('The field “Expires (empty: in a year)” is invalid: must lie in the future.').waitFor();
    await page.getByLabel('Expires').fill('');
    await confirm('Create key');
    await giveReason(page);
    await page.getByText('This key is shown only once').waitFor();
    const shown = dialog.locator('code');
    const made = await shown.textContent();
    expect(await ask('GET', '/v1/capabilities', bearer(made))).toBe(200);
    for (let times = 0; times < 3; times += 1) {
      await page.keyboard.press('Escape');
      expect(await shown.isVisible()).toBe(true);
    }
    await confirm('Done');
    await shown.waitFor({ state: 'detached' });
    const row = page.getByRole('row').filter({ hasText: 'on-call' });
    await row.getByRole('button', { name: 'Rotate' }).click();
    await page.getByLabel('The old key ends').selectOption('immediately');
    // The key is shown although not everything on the page can be read again.
    await page.route('**/v1/sending', () => undefined);
    await confirm('Rotate');
    await giveReason(page);
    await confirm('Done');
    expect(await ask('GET', '/v1/capabilities', bearer(made))).toBe(401);
    await row.getByRole('button', { name: 'Revoke' }).first().click();
    await confirm('Revoke');
    await row.getByText('revoked').waitFor();
  });
});
