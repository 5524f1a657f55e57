import type { Page, Route } from 'playwright-core';
import type { NewApiKeyResponse } from '../../src/access/keys/api-keys.dto.js';
import { importsIn } from '../imports/imports.js';
import { ADMIN_KEY } from '../support/app.js';
import { describeInBrowser, signIn, useBrowser } from '../support/browser.js';
import { useWorld } from '../world/use-world.js';

const world = useWorld();

const CONTENT = 'externalId,email,firstName,lastName\nP-1,p1@mail.example,Noor,Haddad\n';

/** Without `operations`, whose polls of the overview would show it first. */
const SCOPES = ['admin', 'imports', 'people:read', 'sessions:read', 'subscriptions', 'webhooks'];

describeInBrowser('the end of a session while a page is open', () => {
  const browser = useBrowser();

  const newKey = async (scopes: string[]) =>
    (await world.call<NewApiKeyResponse>('POST', '/v1/api-keys', { body: { name: 'browser', scopes } })).body;
  /** Longer than any session lasts. */
  const expire = () => world.advance('1 d');
  const isSignedOut = (page: Page) => page.getByRole('status').getByText('sign in again').waitFor();
  const signOutButton = (page: Page) => page.getByRole('button', { name: 'Sign out' });
  const isShown = async (page: Page) => {
    await page.getByRole('heading', { level: 1 }).waitFor();
    await page.locator('.waiting').first().waitFor({ state: 'detached' });
  };
  const heading = (page: Page) => page.getByRole('heading', { level: 1 }).textContent();
  const plan = async () => {
    const files = [{ name: 'providers.csv', type: 'text/csv', content: CONTENT }];
    return `/imports/${(await importsIn(world).planned('kind=providers&dryRun=true', files)).id}`;
  };
  /** A page whose own clock only the test moves. */
  const opened = async (key: string) => {
    const page = await browser.open(world.url, '/keys', key);
    await page.clock.install();
    await page.goto('/console/keys');
    await isShown(page);
    return page;
  };
  const look = (page: Page) => page.clock.runFor('01:00');
  /** Makes one request, and holds it back until the test answers it. */
  const heldRequest = async (page: Page, path: string, make: (page: Page) => Promise<unknown>): Promise<Route> => {
    const held = new Promise<Route>((hold) => void page.route(`**${path}*`, hold, { times: 1 }));
    await make(page);
    return held;
  };
  const answer = async (page: Page, route: Route, response: Awaited<ReturnType<Route['fetch']>>) => {
    await route.fulfill({ response });
    await (await route.request().response())?.finished();
    await page.clock.runFor('00:05');
  };

  test('leads from every page to the sign-in, and from there back to the same page', async () => {
    const { key } = await newKey(SCOPES);
    const page = await opened(key);
    const links = await page.getByRole('navigation').getByRole('link').all();
    const places = await Promise.all(links.map(async (link) => String(await link.getAttribute('href'))));
    places.push(`/console${await plan()}?outcome=rejected`, '/console/audit?client=C%2F1');
    expect(places.length).toBeGreaterThan(6);
    for (const place of places) {
      await page.goto(place);
      await isShown(page);
      const before = [page.url(), await heading(page)];
      await expire();
      await page.clock.runFor('05:00');
      await isSignedOut(page);
      await signIn(page, key);
      await signOutButton(page).waitFor();
      await isShown(page);
      expect([page.url(), await heading(page)]).toEqual(before);
    }
  });

  const readList = (page: Page) => page.getByRole('link', { name: 'Imports' }).click();
  test.each([
    ['a list', '/v1/imports', readList, look],
    ['a look at the session', '/v1/browser-session', look, readList],
  ])('does not end the next session when the answer to %s arrives late', async (_, path, late, inTime) => {
    const { key } = await newKey(SCOPES);
    const page = await opened(key);
    // The regular look at the hold gets no answer, so that it does not see the end first.
    await page.route('**/v1/sending', () => undefined);
    const route = await heldRequest(page, path, late);
    await expire();
    const response = await route.fetch();
    expect(response.status()).toBe(401);
    await inTime(page);
    await isSignedOut(page);
    await signIn(page, key);
    await signOutButton(page).waitFor();
    await answer(page, route, response);
    expect(await signOutButton(page).isVisible()).toBe(true);
  });

  test('lasts when a look that found the session is answered after the sign-out', async () => {
    const page = await opened((await newKey(SCOPES)).key);
    const route = await heldRequest(page, '/v1/browser-session', look);
    const response = await route.fetch();
    expect(response.status()).toBe(200);
    await signOutButton(page).click();
    await page.getByText('You are signed out.').waitFor();
    await answer(page, route, response);
    expect(await page.getByLabel('API key').isVisible()).toBe(true);
  });

  test('is shown by the polls of the overview', async () => {
    const { id, key } = await newKey(['operations']);
    const page = await browser.open(world.url, '/', key);
    await page.getByRole('button', { name: 'Live' }).waitFor();
    expect((await world.call('DELETE', `/v1/api-keys/${id}`)).status).toBe(204);
    await isSignedOut(page);
  });

  test('is shown by the upload of a file', async () => {
    const page = await browser.open(world.url, '/imports/new', (await newKey(['imports'])).key);
    const file = { name: 'providers.csv', mimeType: 'text/csv', buffer: Buffer.from(CONTENT) };
    await page.getByLabel('choose them').setInputFiles(file);
    // The regular look at the session gets no answer, so that the upload is the first to see the end.
    await page.route('**/v1/browser-session', () => undefined);
    await expire();
    await page.getByRole('button', { name: 'Upload and preview' }).click();
    await isSignedOut(page);
  });

  test('is not assumed while the service answers 503', async () => {
    const page = await browser.open(world.url, '/', ADMIN_KEY);
    const live = page.getByRole('button', { name: 'Live' });
    await live.waitFor();
    let refused = 0;
    await page.route(/v1\/(overview|browser-session)$/, async (route) => {
      refused += 1;
      await route.fulfill({ status: 503, body: 'a proxy says no' });
    });
    await page.reload();
    await page.getByText('status 503 and no problem details').waitFor();
    expect(refused).toBeGreaterThan(2);
    await page.unroute(/v1\/(overview|browser-session)$/);
    await page.getByRole('button', { name: 'Try again' }).click();
    await page.getByRole('heading', { name: 'Overview' }).waitFor();
    await live.waitFor();
  });
});
