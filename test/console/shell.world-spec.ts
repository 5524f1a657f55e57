import type { Page } from 'playwright-core';
import type { NewApiKeyResponse } from '../../src/access/keys/api-keys.dto.js';
import { ADMIN_KEY } from '../support/app.js';
import { axeFindings, describeInBrowser, useBrowser } from '../support/browser.js';
import { useWorld } from '../world/use-world.js';

const world = useWorld();
const ZONE = { timezoneId: 'Asia/Tokyo', locale: 'en-GB' };

describeInBrowser('the frame of every page', () => {
  const browser = useBrowser();

  const keyWith = async (scopes: string[]) =>
    (await world.call<NewApiKeyResponse>('POST', '/v1/api-keys', { body: { name: 'k', scopes } })).body.key;
  const pagesOf = async (page: Page) => page.getByRole('navigation').getByRole('link').allTextContents();
  const dialogOf = (page: Page) => page.getByRole('dialog', { name: 'Find by id or email' });
  const find = async (page: Page, text: string) => {
    // The page listens to keys once it shows its heading.
    await page.getByRole('heading', { level: 1 }).waitFor();
    await page.keyboard.press('Control+k');
    await dialogOf(page).getByLabel('Id or email').fill(text);
    await page.keyboard.press('Enter');
  };

  test('finds a person by email with the keyboard only, and keeps the email out of every URL', async () => {
    const provider = { firstName: 'Ada', lastName: 'Osei', email: 'ada@example.org' };
    await world.call('PUT', '/v1/providers/p-1', { body: provider });
    const profile = { firstName: 'Noor', lastName: 'Haddad', providers: ['p-1'], email: 'noor@example.org' };
    await world.call('PUT', '/v1/clients/c%2F9', { body: profile });
    const page = await browser.open(world.url, '/keys');
    const urls: string[] = [];
    page.on('request', (request) => urls.push(decodeURIComponent(request.url())));
    await find(page, 'noor@example.org');
    const result = dialogOf(page).getByRole('link', { name: 'Client c/9' });
    await result.waitFor();
    expect(await axeFindings(page)).toEqual([]);
    await page.keyboard.press('ArrowDown');
    await dialogOf(page).locator('a:focus').waitFor();
    await page.keyboard.press('Enter');
    await page.waitForURL('**/console/people/client/c%2F9');
    await page.getByRole('heading', { level: 1, name: 'Noor Haddad' }).waitFor();
    expect([new URL(page.url()).pathname, await page.getByRole('dialog').count()]).toEqual([
      '/console/people/client/c%2F9',
      0,
    ]);
    expect(urls.filter((url) => url.includes('noor'))).toEqual([]);
  });

  test('says that names cannot be searched, and what the key may not see; Escape returns the focus', async () => {
    const page = await browser.open(world.url, '/browsers', await keyWith(['imports', 'sessions:read']));
    const button = page.getByRole('button', { name: 'Find by id or email' });
    await button.click();
    await dialogOf(page).getByLabel('Id or email').fill('Haddad');
    await page.keyboard.press('Enter');
    await dialogOf(page).getByText('Names are encrypted').waitFor();
    await dialogOf(page).getByText('lack the scope: people, compliance jobs, deliveries').waitFor();
    await page.keyboard.press('Escape');
    await dialogOf(page).waitFor({ state: 'detached' });
    expect(await page.evaluate('document.activeElement.className')).toBe('search');
  });

  test('has only the pages that the key may use', async () => {
    const page = await browser.open(world.url, '/', await keyWith(['imports', 'sessions:read']));
    expect(await pagesOf(page)).toEqual(['Imports', 'Sessions', 'Browsers']);
    expect(await pagesOf(await browser.open(world.url, '/', ADMIN_KEY))).toContain('Keys');
  });

  test('keeps the pages of a phone in a menu, which closes when one is opened', async () => {
    const page = await browser.open(world.url, '/keys', ADMIN_KEY, { viewport: { width: 390, height: 800 } });
    const menu = page.getByRole('button', { name: 'Menu' });
    const link = page.getByRole('navigation').getByRole('link', { name: 'Browsers' });
    expect(await link.isVisible()).toBe(false);
    await menu.click();
    await link.click();
    await page.getByRole('heading', { name: 'Signed-in browsers' }).waitFor();
    expect([await link.isVisible(), await menu.getAttribute('aria-expanded')]).toEqual([false, 'false']);
    expect(await page.evaluate('document.activeElement.tagName')).toBe('MAIN');
  });

  test('shows each time with its zone, and reads times in the chosen zone', async () => {
    await world.call('PUT', '/v1/sending', { body: { held: true, reason: 'CASE-7' } });
    const since = (await world.call<{ since: string }>('GET', '/v1/sending')).body.since;
    const page = await browser.open(world.url, '/audit?after=2026-03-01T10:00:00.000Z', ADMIN_KEY, ZONE);
    const banner = page.getByRole('status').filter({ hasText: 'Sending to the platform is held' }).locator('time');
    const timeIn = (timeZone: string) =>
      new Intl.DateTimeFormat('en-GB', { dateStyle: 'medium', timeStyle: 'long', timeZone }).format(new Date(since));
    await banner.waitFor();
    expect(await banner.textContent()).toBe(timeIn('Asia/Tokyo'));
    expect(await banner.textContent()).toMatch(/GMT\+9/);
    const field = page.getByLabel('From Asia/Tokyo');
    expect(await field.inputValue()).toBe('2026-03-01T19:00');
    await page.getByLabel('Time zone').selectOption('UTC');
    expect(await banner.textContent()).toBe(timeIn('UTC'));
    expect(await page.getByLabel('From UTC').inputValue()).toBe('2026-03-01T10:00');
    await page.getByLabel('From UTC').fill('2026-03-02T10:00');
    await page.getByRole('button', { name: 'Search' }).click();
    await page.waitForURL(/after=2026-03-02T10%3A00%3A00.000Z/);
    await page.reload();
    expect(await page.getByLabel('Time zone').inputValue()).toBe('UTC');
  });
});
