import { ADMIN_KEY } from '../support/app.js';
import { describeInBrowser, signIn, useBrowser } from '../support/browser.js';
import { useWorld } from '../world/use-world.js';

const world = useWorld();

/** An id with characters that have a meaning in a URL. */
const SECOND = 'C/2 50%25';

describeInBrowser('people and the audit log in the console', () => {
  const { open } = useBrowser();

  test('finds a person by email and resolves it; the audit log shows that', async () => {
    const put = (path: string, more: object) =>
      world.call('PUT', `/v1/${path}`, { body: { firstName: 'Noor', lastName: 'Haddad', ...more }, wait: 30 });
    const second = `clients/${encodeURIComponent(SECOND)}`;
    await put('providers/P-1', { email: 'ada@example.org' });
    await put('clients/C-1', { email: 'noor@example.org', providers: ['P-1'] });
    expect((await put(second, { email: 'noor@example.org', providers: ['P-1'] })).body.sync.state).toBe('needs-review');

    const page = await open(world.url, '/people');
    await page.getByLabel('Search by').selectOption('email');
    await page.getByLabel('The exact email').fill('noor@example.org');
    await page.getByRole('button', { name: 'Search' }).click();
    await page.getByRole('table', { name: 'People found' }).waitFor();
    expect(page.url()).not.toContain('noor');
    await page.getByRole('link', { name: SECOND }).click();
    await page.getByText('another person of the EHR', { exact: true }).waitFor();
    await page.getByRole('link', { name: 'Back to the search' }).click();
    await page.getByRole('link', { name: SECOND }).click();
    expect(page.url()).not.toContain('noor');

    await page.getByRole('button', { name: 'Link' }).click();
    const dialog = page.getByRole('dialog');
    await dialog.getByRole('button', { name: 'Link' }).click();
    await dialog.locator('input:invalid').waitFor();
    const user = dialog.getByLabel('Platform user id');
    await user.fill('nonsense');
    await dialog.getByRole('button', { name: 'Link' }).click();
    await dialog.locator('input:invalid').waitFor();
    await user.fill('6f1c2a34-5b6d-4e7f-8a9b-0c1d2e3f4a5b');
    await dialog.getByText('This service does not know this platform user').waitFor();
    await user.fill(world.platform.usersOf('C-1')[0]?.userId ?? '');
    await dialog.getByText('Already linked to client C-1').waitFor();
    await dialog.getByRole('button', { name: 'Link' }).click();
    await dialog.getByText('This platform user is linked to another person').waitFor();
    await dialog.getByRole('button', { name: 'Cancel' }).click();
    await page.locator('button:focus', { hasText: 'Link' }).waitFor();
    await page.getByRole('button', { name: 'Ignore' }).click();
    await dialog.getByText('Stops syncing this person').waitFor();
    await dialog.getByRole('button', { name: 'Ignore' }).click();
    await page.getByRole('heading', { name: 'failed' }).waitFor();

    await page.getByRole('button', { name: 'Set a legal hold' }).click();
    await dialog.getByLabel('Reason').fill('Mr Doe');
    await dialog.getByRole('button', { name: 'Set a legal hold' }).click();
    await dialog.locator('input:invalid').waitFor();
    await dialog.getByLabel('Reason').fill('CASE-7');
    await dialog.getByRole('button', { name: 'Set a legal hold' }).click();
    await page.getByText('Everything about this client is kept. The audit log').waitFor();
    await page.getByRole('button', { name: 'Release' }).click();
    await dialog.getByRole('button', { name: 'Release' }).click();
    await page.getByRole('button', { name: 'Set a legal hold' }).waitFor();

    await page.getByRole('link', { name: 'Audit log' }).click();
    const entry = page.getByRole('row').filter({ hasText: 'resolved a client' }).first();
    await entry.getByText(SECOND).waitFor();
    await entry.getByRole('link').first().click();
    await dialog.getByText('resolved a client.').waitFor();
    await page.goto(`/console/audit?client=nobody&entry=${new URL(page.url()).searchParams.get('entry')}`);
    await dialog.getByText(SECOND).waitFor();
    await page.goto('/console/audit?entry=999999999');
    await dialog.getByText('This entry does not exist').waitFor();
  });

  test('names the field of a rejected search as the form does', async () => {
    const page = await open(world.url, '/people');
    await page.getByLabel('Search by').selectOption('email');
    await page.getByLabel('The exact email').fill('noor');
    await page.getByRole('button', { name: 'Search' }).click();
    expect(await page.getByRole('alert').locator('p').textContent()).toContain(
      'The field “The exact email” is invalid',
    );
  });

  test('moves the keyboard focus into a linked page, which has its own title', async () => {
    await world.call('PUT', '/v1/providers/P-1', {
      body: { firstName: 'Noor', lastName: 'Haddad', email: 'ada@example.org' },
      wait: 30,
    });
    const page = await open(world.url, '/people?kind=provider');
    const onMain = () => page.locator('main:focus').waitFor();
    const row = page.getByRole('link', { name: 'P-1' });
    await row.waitFor();
    expect(await page.evaluate('document.activeElement.tagName')).toBe('BODY');
    await row.press('Enter');
    await page.getByRole('heading', { name: 'Noor Haddad' }).waitFor();
    await onMain();
    expect(await page.title()).toBe('Provider · People · notebridge');
    await page.goBack();
    await row.waitFor();
    await onMain();
    expect(await page.title()).toBe('People · notebridge');

    const state = page.getByLabel('State');
    await state.focus();
    await state.selectOption('failed');
    await page.getByText('No provider has the state “Failed”').waitFor();
    await page.locator('select:focus').waitFor();

    await page.getByRole('link', { name: 'Imports' }).press('Enter');
    await page.getByText('No imports yet').waitFor();
    await page.locator('nav a:focus', { hasText: 'Imports' }).waitFor();
    await page.getByRole('link', { name: 'Import files' }).press('Enter');
    await onMain();
    expect(await page.title()).toBe('Import files · Imports · notebridge');

    await page.getByRole('button', { name: 'Sign out' }).press('Enter');
    await page.locator('#key:focus').waitFor();
  });

  test('shows a renamed person under its new id', async () => {
    const body = { firstName: 'Noor', lastName: 'Haddad', email: 'ada@example.org' };
    await world.call('PUT', '/v1/providers/P-1', { body, wait: 30 });
    await world.call('POST', '/v1/providers/P-1/rename', { body: { externalId: SECOND } });
    const page = await open(world.url, '/people/provider/P-1');
    await page.getByRole('heading', { name: 'Known on the platform' }).waitFor();
    expect(page.url()).toBe(`${world.url}/console/people/provider/${encodeURIComponent(SECOND)}`);
  });

  describe('the review inbox', () => {
    beforeEach(async () => {
      const provider = { firstName: 'Ada', lastName: 'Osei', email: 'ada@example.org' };
      await world.call('PUT', '/v1/providers/P-1', { body: provider, wait: 30 });
      const client = { firstName: 'Noor', lastName: 'Haddad', email: 'noor@example.org', providers: ['P-1'] };
      for (const id of ['C-1', 'C-2', 'C-3', 'C-4'])
        await world.call('PUT', `/v1/clients/${id}`, { body: client, wait: 30 });
    });

    test('resolves the chosen people with one confirmed action', async () => {
      const page = await open(world.url, '/review');
      await page.getByText('C-4').waitFor();
      await page.getByLabel('Choose C-2').check();
      await page.getByLabel('Choose C-3').check();
      await page.getByRole('button', { name: 'Resolve 2 chosen' }).click();
      const dialog = page.getByRole('dialog');
      await dialog.getByText('Recommended: Ignore.').waitFor();
      expect(await dialog.getByLabel('Action').inputValue()).toBe('ignore');
      await dialog.getByRole('button', { name: 'Count' }).click();
      await dialog.getByText('2 people are selected').waitFor();
      await dialog.getByRole('button', { name: 'Ignore all 2' }).click();
      await dialog.getByText('2 people are resolved').waitFor();
      await dialog.getByRole('button', { name: 'Close' }).click();
      await page.getByText('C-2').waitFor({ state: 'detached' });
      await page.getByText('C-4').waitFor();
      await page.getByRole('button', { name: 'Retry or resolve by reason' }).waitFor();
      const ignored = await world.sql(`SELECT external_id FROM people WHERE error_code = 'ignored' ORDER BY 1`);
      expect(ignored).toEqual([{ external_id: 'C-2' }, { external_id: 'C-3' }]);
    });

    test('retries all people with a reason, and says how many first', async () => {
      world.platform.injectFault({ operation: 'createClient', kind: 'status', status: 400, count: null });
      for (const id of ['C-5', 'C-6']) {
        const client = { firstName: 'Eve', lastName: 'Roe', providers: ['P-1'] };
        await world.call('PUT', `/v1/clients/${id}`, { body: client, wait: 30 });
      }
      world.platform.release();
      const page = await open(world.url, '/review?state=failed');
      await page.getByText('C-6').waitFor();
      await page.getByRole('button', { name: 'Retry or resolve by reason' }).click();
      const dialog = page.getByRole('dialog');
      await dialog.getByLabel('Reason').selectOption('rejected');
      expect(await dialog.getByLabel('Action').inputValue()).toBe('retry');
      await dialog.getByText('Makes the failed call again').waitFor();
      await dialog.getByRole('button', { name: 'Count' }).click();
      await dialog.getByText('2 people are selected').waitFor();
      await dialog.getByRole('button', { name: 'Retry all 2' }).click();
      await dialog.getByText('2 people are retried').waitFor();
      await dialog.getByRole('button', { name: 'Close' }).click();
      await world.settle();
      await page.getByText('No clients have failed').waitFor();
      expect(world.platform.usersOf('C-5')).toHaveLength(1);
    });

    test('shows a person next to the one with the same email, with a recommended action', async () => {
      const page = await open(world.url, '/review');
      const row = page.getByRole('row').filter({ hasText: 'C-2' });
      await row.getByText('Email used twice').waitFor();
      await row.getByText('Ignore', { exact: true }).waitFor();
      await row.getByRole('link', { name: 'Noor Haddad' }).click();
      await page.getByRole('heading', { name: 'Other person with this email' }).first().waitFor();
      await page.getByRole('link', { name: 'client C-1' }).waitFor();
      const choices = page.getByRole('region', { name: 'Resolve' }).getByRole('button');
      expect((await choices.allTextContents())[0]).toBe('Ignore');
      await page.getByText('Recommended.').waitFor();
      await page.getByRole('link', { name: 'Back to the review' }).click();
      await row.waitFor();
    });
  });

  test('offers no action on a person that does not exist', async () => {
    const page = await open(world.url, '/people/client/nobody');
    await page.getByText('No client has this external id').waitFor();
    const main = page.getByRole('main');
    expect(await main.getByRole('button').allTextContents()).toEqual([]);
    expect(await main.getByRole('link').allTextContents()).toEqual(['All clients', 'Audit log']);
  });

  test('forgets a search at the sign-out', async () => {
    const page = await open(world.url, '/people');
    await page.getByLabel('The exact external id').fill('C-7');
    await page.getByRole('button', { name: 'Search' }).click();
    await page.getByText('No person has this external id').waitFor();
    await page.getByRole('button', { name: 'Sign out' }).click();
    await signIn(page, ADMIN_KEY);
    await page.getByText('There is no client yet').waitFor();
  });
});
