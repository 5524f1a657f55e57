import path from 'node:path';
import type { Page } from 'playwright-core';
import { importsIn } from '../imports/imports.js';
import { describeInBrowser, useBrowser } from '../support/browser.js';
import { useWorld } from '../world/use-world.js';

const world = useWorld();
const imports = importsIn(world);

const sample = (name: string) => path.resolve('demo/data', name);
const people = (ids: number[]) =>
  `externalId,email,firstName,lastName\n${ids.map((id) => `P-${id},p${id}@mail.example,Noor,Haddad\n`).join('')}`;
const file = (name: string, content: string) => [{ name, type: 'text/csv', content }];
const providers = (...ids: number[]) => file('providers.csv', people(ids));

describeInBrowser('imports in the console', () => {
  const browser = useBrowser();
  let page: Page;
  beforeEach(async () => {
    page = await browser.open(world.url, '/imports');
  });

  const button = (name: string) => page.getByRole('button', { name, exact: true });
  const link = (name: string | RegExp) => page.getByRole('link', { name });
  const heading = (text: string) => world.workWhile(page.getByRole('heading', { level: 1, name: text }).waitFor());
  const dialog = () => page.getByRole('dialog');
  const show = (id: string, query = '') => page.goto(`/console/imports/${id}${query}`);
  /** Presses a button that asks first, and confirms. */
  const confirmed = async (name: string) => {
    await button(name).click();
    await dialog().getByRole('button', { name, exact: true }).click();
    await dialog().waitFor({ state: 'detached' });
  };
  const apply = async () => {
    await confirmed('Apply');
    await heading('completed');
  };
  const sendCorrected = async () => {
    await button('Send 1 corrected row and plan').click();
    await heading('corrected-clients.ndjson planned');
  };
  /** Corrects the last name in the only rejected row of a plan. */
  const correctLastName = async (query: string, content: string) => {
    const { id } = await imports.planned(`kind=clients&dryRun=true&${query}`, file('clients.csv', content));
    await show(id);
    await link('1 rejected').click();
    await page.getByLabel('Last name of line 2 of clients.csv').fill('Berg');
    await sendCorrected();
    return page.locator('main').textContent();
  };

  test('applies the plan of the sample files; a rejected row is corrected in place', async () => {
    await link('Import files').click();
    await page.getByLabel('choose them').setInputFiles([sample('providers.csv'), sample('clients.csv')]);
    await page.getByLabel('What clients.csv holds').waitFor();
    expect(await page.getByLabel('What providers.csv holds').inputValue()).toBe('providers');
    expect(await page.getByLabel('What clients.csv holds').inputValue()).toBe('clients');
    await button('Send and plan').click();

    await heading('providers.csv, clients.csv planned');
    await link('2 rejected').waitFor();
    expect(await page.locator('main').textContent()).toMatch(/Nothing was sent yet\. Applying it takes .* calls/);
    await page.getByRole('heading', { name: 'Rejected: 2 of 2 rows' }).waitFor();
    await page.locator('mark', { hasText: 'P-199' }).waitFor();
    expect(world.platform.arrivals()).toBe(0);
    await apply();
    await link(/created on the platform/).waitFor();

    await link('2 rejected').click();
    const cell = page.getByLabel('Providers of line 15 of clients.csv');
    expect(await cell.inputValue()).toBe('P-199');
    await cell.fill('P-104');
    await sendCorrected();
    await apply();
    expect(world.platform.usersOf('C-1014')).toHaveLength(1);
  });

  test("sends corrected rows with the import's default provider", async () => {
    await imports.imported('kind=providers', providers(101));
    const content = 'externalId,email,firstName,lastName,providers\nC-1,,Ann,,\n';
    expect(await correctLastName('defaultProvider=P-101', content)).toContain('1 to create');
    await apply();
    expect(world.platform.usersOf('C-1')).toHaveLength(1);
  });

  test('keeps the providers of a client whose corrected row names none', async () => {
    const columns = 'externalId,email,firstName,lastName';
    await imports.imported('kind=providers', providers(101, 102));
    await imports.imported('kind=clients', file('clients.csv', `${columns},providers\nC-1,,Ann,Berg,P-102\n`));
    expect(await correctLastName('defaultProvider=P-101', `${columns}\nC-1,,Ann,\n`)).toContain('1 unchanged');
  });

  test.each(['', '?outcome=created'])('reads rows (%s) again only on request after other changes', async (query) => {
    const { id } = await imports.imported('kind=providers', providers(1, 2));
    await show(id, query);
    await page.getByRole('cell', { name: 'P-2', exact: true }).waitFor();
    await button('Live').waitFor();
    const reads: string[] = [];
    page.on('request', (request) => {
      if (new URL(request.url()).pathname.endsWith('/rows')) reads.push(request.url());
    });
    await imports.imported('kind=providers', providers(3));
    await world.advance('3 s');
    await button('Changed: read again').waitFor();
    expect(reads).toEqual([]);
    const read = page.waitForRequest(/\/rows/);
    await button('Changed: read again').click();
    await read;
  });

  test('takes files dropped on any page of imports; one of them is left out again', async () => {
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

  test('applies a plan that a guard holds back once the number of people is typed', async () => {
    await imports.imported('kind=providers', providers(...Array(20).keys()));
    await show((await imports.planned('kind=providers&mode=snapshot', providers(1, 2))).id);
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
    expect(world.platform.usersOf('P-5')).toEqual([]);
  });

  test('pauses, resumes and cancels an import', async () => {
    await show((await imports.prepared('kind=providers', providers(1, 2, 3))).id);
    // Only the page works here: work in the background would end the import.
    const shown = (text: string) => page.getByRole('heading', { level: 1, name: text }).waitFor();
    await shown('running');
    await page.getByText('0 of 3 rows done').waitFor();
    await button('Pause').click();
    await shown('paused');
    await page.getByText('it is paused').waitFor();
    await button('Resume').click();
    await shown('running');
    await confirmed('Cancel the import');
    await shown('cancelled');
    await world.settle();
    expect(world.platform.arrivals()).toBe(0);
  });

  test('retries failed rows', async () => {
    const match = { partnerUserId: 'P-1' };
    world.platform.injectFault({ operation: 'createProvider', kind: 'status', status: 400, count: null, match });
    await show((await imports.imported('kind=providers', providers(1, 2))).id);
    await link('1 failed').waitFor();
    world.platform.release();
    await confirmed('Retry');
    await world.workWhile(link('2 created on the platform').waitFor());
    await heading('completed');
  });
});
