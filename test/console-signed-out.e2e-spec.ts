import type { Page, Route } from 'playwright-core';
import { until } from '../harness/until.js';
import type { NewApiKeyResponse } from '../src/access/keys/api-keys.dto.js';
import { ADMIN_KEY } from './support/app.js';
import { describeInBrowser, signIn, useBrowser } from './support/browser.js';
import { useSharedService } from './support/shared-service.js';
import { answerTo } from './support/webhook-requests.js';

const CONTENT = 'externalId,email,firstName,lastName\nP-1,p1@mail.example,Noor,Haddad\n';

/** Without `operations`, whose stream of events would tell of the end by itself. */
const SCOPES = ['admin', 'imports', 'people:read', 'sessions:read', 'webhooks'];

describeInBrowser('a session that ends while a page is open', () => {
  const shared = useSharedService();
  const browser = useBrowser();

  const newKey = async (scopes: string[]) =>
    (await shared.service.call<NewApiKeyResponse>('POST', '/v1/api-keys', { body: { name: 'browser', scopes } })).body;
  const revoke = ({ id }: NewApiKeyResponse) =>
    answerTo(`${shared.service.url}/v1/api-keys/${id}`, {
      method: 'DELETE',
      headers: { authorization: `Bearer ${ADMIN_KEY}` },
    });
  const expire = () =>
    shared.mirror.sql(`UPDATE browser_sessions SET expires_at = now() - interval '1 second' WHERE expires_at > now()`);
  const isSignedOut = (page: Page) => page.getByRole('status').getByText('sign in again').waitFor();
  const isShown = async (page: Page) => {
    await page.getByRole('heading', { level: 1 }).waitFor();
    await page.locator('.waiting').first().waitFor({ state: 'detached' });
  };
  const heading = (page: Page) => page.getByRole('heading', { level: 1 }).textContent();
  const plan = () =>
    shared.service.startImport('kind=providers&dryRun=true', [
      { name: 'providers.csv', type: 'text/csv', content: CONTENT },
    ]);

  it('leads from every page to the sign-in, and from there back to the same page', async () => {
    const { key } = await newKey(SCOPES);
    const page = await browser.open(shared.service.url, '/keys', key);
    await page.clock.install();
    const links = await page.getByRole('navigation').getByRole('link').all();
    const places = await Promise.all(links.map(async (link) => String(await link.getAttribute('href'))));
    places.push(`/console/imports/${(await plan()).id}?outcome=rejected`, '/console/audit?client=C%2F1');
    for (const place of places) {
      await page.goto(place);
      await isShown(page);
      const before = [page.url(), await heading(page)];
      await expire();
      await page.clock.runFor('05:00');
      await isSignedOut(page);
      await signIn(page, key);
      await page.getByRole('button', { name: 'Sign out' }).waitFor();
      await isShown(page);
      expect([page.url(), await heading(page)]).toEqual(before);
    }
  });

  const look = (page: Page) => page.clock.runFor('01:00');
  const readList = (page: Page) => page.getByRole('link', { name: 'Imports' }).click();
  it.each([
    ['a list', '/v1/imports', readList, look],
    ['the look whether it still holds', '/v1/browser-session', look, readList],
  ])('is not taken for the end of the session after it where %s is answered late', async (_, path, late, inTime) => {
    const { key } = await newKey(SCOPES);
    const page = await browser.open(shared.service.url, '/keys', key);
    await page.clock.install();
    await page.goto('/console/keys');
    await isShown(page);
    const held: Route[] = [];
    await page.route(`**${path}*`, (route) => void held.push(route), { times: 1 });
    await late(page);
    const route = await until('the request is made', () => held[0]);
    await expire();
    const response = await route.fetch();
    await inTime(page);
    await isSignedOut(page);
    await signIn(page, key);
    await page.getByRole('button', { name: 'Sign out' }).waitFor();
    await route.fulfill({ response });
    await (await route.request().response())?.finished();
    await page.clock.runFor('00:05');
    expect(await page.getByRole('button', { name: 'Sign out' }).isVisible()).toBe(true);
  });

  it('stays ended where a look that found it is answered after the sign-out', async () => {
    const page = await browser.open(shared.service.url, '/keys', (await newKey(SCOPES)).key);
    await page.clock.install();
    await page.goto('/console/keys');
    await isShown(page);
    const held: Route[] = [];
    await page.route('**/v1/browser-session', (route) => void held.push(route), { times: 1 });
    await look(page);
    const route = await until('the look is taken', () => held[0]);
    const response = await route.fetch();
    expect(response.status()).toBe(200);
    await page.getByRole('button', { name: 'Sign out' }).click();
    await page.getByText('You are signed out.').waitFor();
    await route.fulfill({ response });
    await (await route.request().response())?.finished();
    await page.clock.runFor('00:05');
    expect(await page.getByLabel('API key').isVisible()).toBe(true);
  });

  it.each([
    ['the overview', ['operations'], () => '/'],
    ['an import', ['imports'], async () => `/imports/${(await plan()).id}`],
  ])('is seen by the end of the stream of events of %s', async (_, scopes, place) => {
    const made = await newKey(scopes);
    const page = await browser.open(shared.service.url, await place(), made.key);
    const stream = page.waitForResponse((response) => response.headers()['content-type'] === 'text/event-stream');
    await page.reload();
    await stream;
    await revoke(made);
    await isSignedOut(page);
  });

  it('is seen by the upload of a file, too', async () => {
    const page = await browser.open(shared.service.url, '/imports/new', (await newKey(['imports'])).key);
    const file = { name: 'providers.csv', mimeType: 'text/csv', buffer: Buffer.from(CONTENT) };
    await page.getByLabel('choose them').setInputFiles(file);
    // The look that the page takes each half a minute gets no answer, so that the upload is the first to hear of it.
    await page.route('**/v1/browser-session', () => undefined);
    await expire();
    await page.getByRole('button', { name: 'Send and plan' }).click();
    await isSignedOut(page);
  });

  it('is told from a service that is away for a while, which is asked again', async () => {
    const page = await browser.open(shared.service.url, '/', ADMIN_KEY);
    const live = page.getByRole('button', { name: 'Live' });
    await live.waitFor();
    let refused = 0;
    await page.route(/v1\/(overview|browser-session)$/, async (route) => {
      refused += 1;
      await route.fulfill({ status: 503, body: 'a proxy says no' });
    });
    await page.reload();
    await page.getByText('answered 503 without a reason').waitFor();
    expect(refused).toBeGreaterThan(2);
    await page.unroute(/v1\/(overview|browser-session)$/);
    await page.getByRole('button', { name: 'Try again' }).click();
    await page.getByRole('heading', { name: 'Overview' }).waitFor();
    await live.waitFor();
  });
});
