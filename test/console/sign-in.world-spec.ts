import { readFileSync } from 'node:fs';
import type { Page } from 'playwright-core';
import { ADMIN_KEY } from '../support/app.js';
import { axeFindings, describeInBrowser, giveReason, useBrowser } from '../support/browser.js';
import { useOpenId } from '../support/openid.js';

const { world } = useOpenId();

describeInBrowser('people in the console', () => {
  const browser = useBrowser();

  const button = (page: Page, name: string) => page.getByRole('button', { name, exact: true });
  const heading = (page: Page, name: string) => page.getByRole('heading', { level: 1, name }).waitFor();
  /** Chooses at the provider who signs in. */
  const choose = async (page: Page, login: string) => {
    await page.getByLabel('Login').fill(login);
    await button(page, 'Continue').click();
  };
  /** A page of the console in another browser context, signed in. */
  const signedIn = async (login: string, path = '') => {
    const page = await browser.enter(world.url);
    if (path) await page.goto(`/console${path}`);
    await page.getByRole('link', { name: /^Sign in with localhost/ }).click();
    await choose(page, login);
    await button(page, 'Sign out').waitFor();
    return page;
  };

  test('sign in at the provider, lack a scope, and are signed out elsewhere, all of it audited', async () => {
    const cleo = await signedIn('cleo', '/people?kind=provider');
    await heading(cleo, 'People');
    expect(new URL(cleo.url()).search).toBe('?kind=provider');
    expect(await cleo.getByRole('link', { name: 'Keys' }).count()).toBe(0);
    await cleo.goto('/console/keys');
    await cleo.getByText('You need the scope').waitFor();
    await cleo.getByRole('link', { name: 'Browsers' }).click();
    await cleo.getByText('this browser').waitFor();

    const ada = await signedIn('ada', '/browsers');
    await heading(ada, 'Signed-in browsers');
    const row = ada.getByRole('row').filter({ hasText: 'Cleo Brandt' });
    await row.waitFor();
    expect(await axeFindings(ada)).toEqual([]);
    // The regular looks of her page get no answer, so that the click is the first to see the end.
    await cleo.route(/v1\/(browser-session|sending)$/, () => undefined);
    await button(ada, 'End session').click();
    await ada.getByRole('dialog').getByRole('button', { name: 'End session' }).click();
    await row.waitFor({ state: 'detached' });
    await cleo.getByRole('link', { name: 'People' }).click();
    await cleo.getByRole('status').getByText('Your session has ended').waitFor();

    await ada.getByRole('link', { name: 'Audit' }).click();
    const entry = ada
      .getByRole('row')
      .filter({ hasText: 'signed in through the identity provider' })
      .filter({ hasText: 'Cleo Brandt' });
    await entry.waitFor();
    await ada.getByRole('row').filter({ hasText: 'ended the session of a browser' }).getByText('Ada Osei').waitFor();
    await entry.getByRole('link').first().click();
    await ada.getByRole('dialog').getByText('cleo', { exact: true }).waitFor();
  });

  test('see why the provider or their groups do not let them in', async () => {
    const page = await browser.enter(world.url);
    await page.getByRole('link', { name: /^Sign in with/ }).click();
    await choose(page, 'zoe');
    await page.getByRole('alert').getByText('none of your groups').waitFor();
    expect(await axeFindings(page)).toEqual([]);
    await page.getByLabel('API key').fill(ADMIN_KEY);
    await button(page, 'Sign in').click();
    await heading(page, 'Overview');
  });

  /** Signs in again in a tab that the console opens, or that has its address. */
  const signInAgain = async (tab: Page) => {
    if (tab.url() === 'about:blank') await tab.goto(`${world.url}/v1/sign-in?fresh=true&returnTo=/console/sign-in`);
    await choose(tab, 'ada');
    await tab.getByText('Close this tab').waitFor();
    await tab.close();
  };

  test('confirm their identity in another tab before they create a key, and keep their input', async () => {
    const ada = await signedIn('ada', '/keys');
    await world.advance('6 min');
    await button(ada, 'Create key').click();
    await ada.getByLabel('Name').fill('on-call');
    await ada.getByLabel('operations').check();
    await ada.getByRole('dialog').getByRole('button', { name: 'Create key' }).click();
    const dialog = ada.getByRole('dialog').filter({ hasText: 'Confirm your identity' });
    await dialog.getByLabel('Reason').fill('TICKET-7');
    expect(await button(ada, 'Continue').isDisabled()).toBe(true);
    const opened = ada.waitForEvent('popup');
    await dialog.getByRole('link', { name: /^Sign in again/ }).click();
    await signInAgain(await opened);
    await dialog.getByText('Your identity is confirmed.').waitFor();
    await button(ada, 'Continue').click();
    await ada.getByText('This key is shown only once').waitFor();
    await button(ada, 'Done').click();
    await ada.getByRole('row').filter({ hasText: 'on-call' }).getByRole('button', { name: 'Revoke' }).click();
    await signInAgain(await ada.context().newPage());
    await ada.getByRole('dialog').getByRole('button', { name: 'Revoke' }).click();
    await ada.getByRole('cell', { name: 'revoked' }).waitFor();
    await ada.goto('/console/audit?action=POST+%2Fv1%2Fapi-keys');
    await ada.getByRole('row').filter({ hasText: 'ok' }).getByRole('link').click();
    await ada.getByRole('dialog').getByText('TICKET-7').waitFor();
  });

  test('give a reason to export a client, and can change their mind', async () => {
    await world.call('PUT', '/v1/providers/p-1', {
      body: { firstName: 'Ada', lastName: 'Osei', email: 'p-1@example.org' },
    });
    await world.call('PUT', '/v1/clients/c-1', { body: { firstName: 'Noor', lastName: 'Haddad', providers: ['p-1'] } });
    const ada = await signedIn('ada', '/people/client/c-1');
    await button(ada, 'Export').click();
    await button(ada, 'Cancel').click();
    await ada.getByRole('alert').getByText('This needs a reason').waitFor();
    const downloading = ada.waitForEvent('download');
    await button(ada, 'Export').click();
    await giveReason(ada);
    const download = await downloading;
    expect(JSON.parse(readFileSync(await download.path(), 'utf8'))).toMatchObject({ complete: true });
  });

  test('show their key again if they signed in with one', async () => {
    const page = await browser.open(world.url, '/keys');
    await world.advance('6 min');
    await button(page, 'Create key').click();
    await page.getByLabel('Name').fill('on-call');
    await page.getByLabel('operations').check();
    await page.getByRole('dialog').getByRole('button', { name: 'Create key' }).click();
    const dialog = page.getByRole('dialog').filter({ hasText: 'Confirm your identity' });
    await dialog.getByLabel('API key').fill('nb_wrong');
    await dialog.getByLabel('Reason').fill('no blanks');
    await button(page, 'Continue').click();
    await dialog.locator('input:invalid').waitFor();
    await giveReason(page);
    await dialog.getByText('This is not the key of this session').waitFor();
    expect(await axeFindings(page)).toEqual([]);
    await dialog.getByLabel('API key').fill(ADMIN_KEY);
    await button(page, 'Continue').click();
    await page.getByText('This key is shown only once').waitFor();
  });
});
