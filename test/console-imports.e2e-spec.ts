import path from 'node:path';
import type { Page } from 'playwright-core';
import { until } from '../harness/until.js';
import { describeInBrowser, useBrowser } from './support/browser.js';
import { PLATFORM_ACCOUNT } from './support/service.js';
import { useSharedService } from './support/shared-service.js';

const sample = (name: string) => path.resolve('demo/data', name);
const people = (ids: number[]) =>
  `externalId,email,firstName,lastName\n${ids.map((id) => `P-${id},p${id}@mail.example,Noor,Haddad\n`).join('')}`;
const providers = (content: string) => [{ name: 'providers.csv', type: 'text/csv', content }];

describeInBrowser('imports in the console', () => {
  const shared = useSharedService();
  const browser = useBrowser();
  let page: Page;
  beforeEach(async () => {
    page = await browser.open(shared.service.url, '/imports');
  });

  const button = (name: string) => page.getByRole('button', { name, exact: true });
  const heading = (text: string) => page.getByRole('heading', { level: 1, name: text }).waitFor();
  const dialog = () => page.getByRole('dialog');
  /** Presses a button that asks first, and confirms. */
  const confirmed = async (name: string) => {
    await button(name).click();
    await dialog().getByRole('button', { name, exact: true }).click();
    await dialog().waitFor({ state: 'detached' });
  };
  /** Applies the plan that is shown, and waits until the page tells of the end by itself. */
  const apply = async () => {
    await confirmed('Apply');
    await heading('completed');
  };
  const start = async (query: string, content: string, name = 'providers.csv') => {
    const { id } = await shared.service.startImport(query, [{ name, type: 'text/csv', content }]);
    await page.goto(`/console/imports/${id}`);
    return id;
  };

  test('the sample files are sent, their plan is read and applied, and a rejected row is corrected in place', async () => {
    await page.getByRole('link', { name: 'Import files' }).click();
    await page.getByLabel('choose them').setInputFiles([sample('providers.csv'), sample('clients.csv')]);
    await page.getByLabel('What clients.csv holds').waitFor();
    expect(await page.getByLabel('What providers.csv holds').inputValue()).toBe('providers');
    expect(await page.getByLabel('What clients.csv holds').inputValue()).toBe('clients');
    await button('Send and plan').click();

    await heading('providers.csv, clients.csv planned');
    await page.getByRole('link', { name: '2 rejected' }).waitFor();
    const shown = await page.locator('main').textContent();
    expect(shown).toMatch(/Nothing was sent yet\. Applying it takes .* calls/);
    await page.getByRole('heading', { name: 'Rejected: 2 of 2 rows' }).waitFor();
    await page.locator('mark', { hasText: 'P-199' }).waitFor();
    expect(shared.mirror.arrivals()).toBe(0);
    await apply();
    await page.getByRole('link', { name: /created on the platform/ }).waitFor();

    await page.getByRole('link', { name: '2 rejected' }).click();
    const cell = page.getByLabel('Providers of line 15 of clients.csv');
    expect(await cell.inputValue()).toBe('P-199');
    await cell.fill('P-104');
    await button('Send 1 corrected row and plan').click();
    await heading('corrected-clients.ndjson planned');
    await apply();
    expect(shared.mirror.usersOf('C-1014')).toHaveLength(1);
  });

  test('corrected rows are sent with the provider that the import named for clients without one', async () => {
    await shared.service.importEnded(await start('kind=providers', people([101])));
    const content = 'externalId,email,firstName,lastName,providers\nC-1,,Ann,,\n';
    await start('kind=clients&dryRun=true&defaultProvider=P-101', content, 'clients.csv');
    await page.getByRole('link', { name: '1 rejected' }).click();
    await page.getByLabel('Last name of line 2 of clients.csv').fill('Berg');
    await button('Send 1 corrected row and plan').click();
    await heading('corrected-clients.ndjson planned');
    expect(await page.locator('main').textContent()).toContain('1 to create');
    await apply();
    expect(shared.mirror.usersOf('C-1')).toHaveLength(1);
  });

  test('a corrected row that names no provider leaves a client with those that he has', async () => {
    await shared.service.importEnded(await start('kind=providers', people([101, 102])));
    const columns = 'externalId,email,firstName,lastName';
    const known = await start('kind=clients', `${columns},providers\nC-1,,Ann,Berg,P-102\n`, 'clients.csv');
    await shared.service.importEnded(known);
    const content = `${columns}\nC-1,,Ann,\n`;
    await start('kind=clients&dryRun=true&defaultProvider=P-101', content, 'clients.csv');
    await page.getByRole('link', { name: '1 rejected' }).click();
    await page.getByLabel('Last name of line 2 of clients.csv').fill('Berg');
    await button('Send 1 corrected row and plan').click();
    await heading('corrected-clients.ndjson planned');
    expect(await page.locator('main').textContent()).toContain('1 unchanged');
  });

  test('rows are read when somebody asks for them or the import goes on, and not because others change', async () => {
    const id = await start('kind=providers', people([1, 2]));
    await heading('completed');
    const reads: string[] = [];
    page.on('request', (request) => {
      if (new URL(request.url()).pathname.endsWith('/rows')) reads.push(request.url());
    });
    const again = button('Changed: read again');
    for (const query of ['', '?outcome=created']) {
      await page.goto(`/console/imports/${id}${query}`);
      await page.getByRole('cell', { name: 'P-2', exact: true }).waitFor();
      await button('Live').waitFor();
      reads.splice(0);
      const other = await shared.service.startImport('kind=providers', providers(people([3])));
      await shared.service.importEnded(other.id);
      await until('the change is seen', async () => reads.length > 0 || (await again.isVisible()));
      expect(reads).toEqual([]);
      await again.click();
      await until('the rows are read again', () => reads.length > 0);
    }
  });

  test('files are dropped on any page of imports, and one of them is left out again', async () => {
    await page.getByText('Nothing was imported yet').waitFor();
    const dataTransfer = await page.evaluateHandle(`
      const dropped = new DataTransfer();
      dropped.items.add(new File([${JSON.stringify(people([1]))}], 'providers.csv'));
      dropped.items.add(new File(['hello'], 'notes.txt'));
      dropped;
    `);
    await page.dispatchEvent('main', 'dragover', { dataTransfer });
    await page.getByText('Drop the files to import them').waitFor();
    await page.dispatchEvent('main', 'drop', { dataTransfer });
    await page.getByLabel('What notes.txt holds').waitFor();
    expect(await button('Send and plan').isDisabled()).toBe(true);
    await button('Leave out notes.txt').click();
    await button('Send and plan').click();
    await heading('providers.csv planned');
  });

  test('a plan that a guard holds back is applied by who types how many people it touches', async () => {
    const { id } = await shared.service.startImport('kind=providers', providers(people([...Array(20).keys()])));
    await shared.service.importEnded(id);
    await start('kind=providers&mode=snapshot', people([1, 2]));
    await heading('planned, held back');
    await button('Apply').click();
    const typed = dialog().getByLabel(/18 of 20 people would be deleted/);
    for (const wrong of ['', '17', '180']) {
      await typed.fill(wrong);
      await dialog().getByRole('button', { name: 'Apply' }).click();
      await dialog().locator('input:invalid').waitFor();
    }
    await typed.fill('18');
    await dialog().getByRole('button', { name: 'Apply' }).click();
    await heading('completed');
    expect(shared.mirror.usersOf('P-5')).toEqual([]);
  });

  test('an import is paused, resumed and cancelled', async () => {
    const noCalls = `INSERT INTO call_budgets (account, blocked_until) VALUES ($1, now() + interval '1 day')
      ON CONFLICT (account) DO UPDATE SET blocked_until = excluded.blocked_until`;
    await shared.mirror.sql(noCalls, [PLATFORM_ACCOUNT]);
    await start('kind=providers', people([1, 2, 3]));
    await heading('running');
    await page.getByText('0 of 3 rows done').waitFor();
    await button('Pause').click();
    await heading('paused');
    await page.getByText('it is paused').waitFor();
    await button('Resume').click();
    await heading('running');
    await confirmed('Cancel the import');
    await heading('cancelled');
    expect(shared.mirror.arrivals()).toBe(0);
  });

  test('what failed is taken up again', async () => {
    shared.mirror.trouble({ operation: 'createProvider', kind: 'status', status: 400 });
    const id = await start('kind=providers', people([1, 2]));
    expect((await shared.service.importEnded(id)).counts.failed).toBe(1);
    await page.getByRole('link', { name: '1 failed' }).waitFor();
    await confirmed('Retry');
    await page.getByRole('link', { name: '2 created on the platform' }).waitFor();
    await heading('completed');
  });
});
