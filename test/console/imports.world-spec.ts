import path from 'node:path';
import type { Page } from 'playwright-core';
import { importsIn } from '../imports/imports.js';
import { describeInBrowser, giveReason, useBrowser } from '../support/browser.js';
import { useWorld } from '../world/use-world.js';

const world = useWorld();
const imports = importsIn(world);

const sample = (name: string) => path.resolve('demo/data', name);
const HEADER = 'externalId,email,firstName,lastName';
const people = (ids: number[]) => `${HEADER}\n${ids.map((id) => `P-${id},p${id}@mail.example,Noor,Haddad\n`).join('')}`;
const file = (name: string, content: string) => ({ name, type: 'text/csv', content });
const providers = (...ids: number[]) => [file('providers.csv', people(ids))];

/** An export whose columns have to be chosen, because two of them could be the id. */
const german = (...rows: string[]) => ({
  name: 'klienten.csv',
  mimeType: 'text/csv',
  buffer: Buffer.from(['Patientennummer;Fallnummer;Vorname;Nachname;Therapeut', ...rows, ''].join('\n')),
});
const COLUMNS = {
  Patientennummer: 'external id',
  Fallnummer: 'ignore',
  Vorname: 'first name',
  Nachname: 'last name',
  Therapeut: 'providers',
};

describeInBrowser('imports in the console', () => {
  const browser = useBrowser();
  let page: Page;
  beforeEach(async () => {
    page = await browser.open(world.url, '/imports');
  });

  const button = (name: string) => page.getByRole('button', { name, exact: true });
  const link = (name: string | RegExp) => page.getByRole('link', { name, exact: true });
  const heading = (text: string) => world.workWhile(page.getByRole('heading', { level: 1, name: text }).waitFor());
  const dialog = () => page.getByRole('dialog');
  const show = (id: string, query = '') => page.goto(`/console/imports/${id}${query}`);
  const choose = (files: Parameters<ReturnType<Page['getByLabel']>['setInputFiles']>[0]) =>
    page.getByLabel('choose them').setInputFiles(files);
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
  /** Leaves the page by a link, and takes that back when asked. */
  const staysOn = async (name: string) => {
    const { pathname } = new URL(page.url());
    const asked = page.waitForEvent('dialog').then((question) => question.dismiss());
    await link(name).click();
    await asked;
    expect(new URL(page.url()).pathname).toBe(pathname);
  };

  test('applies the plan of the sample files; rejected rows become a new import', async () => {
    await link('Import files').click();
    await choose([sample('clients.csv'), sample('providers.csv')]);
    await button('Upload and preview').click();

    await heading('providers.csv, clients.csv planned');
    await link(/^\d+ to create or link$/).waitFor();
    await link('2 rejected').waitFor();
    await page.getByText(/^Nothing has been sent yet/).waitFor();
    expect(world.platform.arrivals()).toBe(0);
    await apply();
    await link(/^\d+ created$/).waitFor();

    await link('2 rejected').click();
    const cell = page.getByLabel('Providers of line 15 of clients.csv');
    expect(await cell.inputValue()).toBe('P-199');
    await cell.fill('P-104');
    await button('Send 1 corrected row as a new import').click();
    await heading('corrected.ndjson planned');
    await apply();
    expect(world.platform.usersOf('C-1014')).toHaveLength(1);
    await link('an earlier import').click();
    await heading('providers.csv, clients.csv completed');
    await link('corrected.ndjson').waitFor();
  });

  test('corrects rejected rows of a plan whose providers are only planned', async () => {
    const clients = file('clients.csv', `${HEADER},providers\nC-1,,Ann,Berg,P-l\nC-2,,Ben,,P-1\n`);
    await show((await imports.planned('dryRun=true', [...providers(1), clients])).id);
    await link('1 rejected: unknown provider').click();
    await page.getByLabel('Providers of line 2 of clients.csv').fill('P-1');
    await staysOn('All imports');
    await button('Show all rows').click();
    await link('2 rejected').click();
    await page.getByLabel('Last name of line 3 of clients.csv').fill('Falk');
    await button('Send 2 corrected rows and plan again').click();
    await world.workWhile(link('3 to create or link').waitFor());
    await button('Show all rows').click();
    await page.getByRole('row', { name: /C-1 .*Corrected/ }).waitFor();
    await apply();
    expect(world.platform.usersOf('C-1')).toHaveLength(1);
  });

  test('asks for the columns of a file, and offers them for the next one', async () => {
    await imports.imported('kind=providers', providers(1));
    await link('Import files').click();
    await choose(german('4711;1;Ann;Berg;P-1'));
    await page.getByLabel('Content of klienten.csv').selectOption('clients');
    await button('Upload and preview').click();
    await heading('klienten.csv needs columns');
    for (const [column, label] of Object.entries(COLUMNS))
      await page.getByLabel(`Read ${column} as`).selectOption({ label });
    await staysOn('All imports');
    await button('Use these columns').click();
    await heading('klienten.csv planned');
    await page.getByText('klienten.csv: clients, CSV, 1 row; ignored columns: Fallnummer').waitFor();
    await apply();
    expect(world.platform.usersOf('4711')).toHaveLength(1);

    await link('New import with these options').click();
    await choose(german('4711;1;Ann;Berg;P-1', '4712;2;Ben;Falk;P-1'));
    await page.getByLabel('Content of klienten.csv').selectOption('clients');
    await button('Upload and preview').click();
    await heading('klienten.csv needs columns');
    await page.getByText('As in the last import').first().waitFor();
    await button('Use these columns').click();
    await world.workWhile(link('1 to create or link').waitFor());
    await link('1 unchanged').waitFor();
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
    await button('New data: reload').waitFor();
    expect(reads).toEqual([]);
    const read = page.waitForRequest(/\/rows/);
    await button('New data: reload').click();
    await read;
  });

  test('takes files dropped on any page of imports', async () => {
    await page.getByText('No imports yet').waitFor();
    const dataTransfer = await page.evaluateHandle(`
      const dropped = new DataTransfer();
      dropped.items.add(new File([${JSON.stringify(people([1]))}], 'providers.csv'));
      dropped.items.add(new File(['hello'], 'notes.txt'));
      dropped;
    `);
    await page.dispatchEvent('main', 'dragover', { dataTransfer });
    await page.getByText('Drop the files to import them').waitFor();
    await page.dispatchEvent('main', 'drop', { dataTransfer });
    await button('Remove notes.txt').click();
    await button('Upload and preview').click();
    await heading('providers.csv planned');
  });

  test('applies a plan with an exceeded guard after the number of people is typed', async () => {
    await imports.imported('kind=providers', providers(...Array(20).keys()));
    await show((await imports.planned('kind=providers&mode=snapshot', providers(1, 2))).id);
    await heading('needs confirmation');
    await link('18 to delete').click();
    await page.getByRole('cell', { name: 'P-5', exact: true }).waitFor();
    await button('Apply').click();
    const typed = dialog().getByLabel(/18 of 20 people would be deleted/);
    for (const wrong of ['', '17', '180']) {
      await typed.fill(wrong);
      await dialog().getByRole('button', { name: 'Apply' }).click();
      await dialog().locator('input:invalid').waitFor();
    }
    await typed.fill('18');
    await dialog().getByRole('button', { name: 'Apply' }).click();
    await giveReason(page);
    await heading('completed');
    expect(world.platform.usersOf('P-5')).toEqual([]);
  });

  test('pauses, resumes and cancels an import', async () => {
    await show((await imports.prepared('kind=providers', providers(1, 2, 3))).id);
    // Only the page works here, because work in the background would end the import.
    const shown = (text: string) => page.getByRole('heading', { level: 1, name: text }).waitFor();
    await shown('running');
    await page.getByText('0 of 3 rows done').waitFor();
    await button('Pause').click();
    await shown('paused');
    await page.getByText('The import is paused.').waitFor();
    await button('Resume').click();
    await shown('running');
    await confirmed('Cancel the import');
    await shown('cancelled');
  });

  test('retries failed rows', async () => {
    const match = { partnerUserId: 'P-1' };
    world.platform.injectFault({ operation: 'createProvider', kind: 'status', status: 400, count: null, match });
    await show((await imports.imported('kind=providers', providers(1, 2))).id);
    await link('1 failed').waitFor();
    world.platform.release();
    await confirmed('Retry');
    await world.workWhile(link('2 created').waitFor());
    await heading('completed');
  });
});
