import pg from 'pg';
import type { Page } from 'playwright-core';
import type { Service } from '../harness/service.js';
import { until } from '../harness/until.js';
import { runWorkload } from '../harness/workload.js';
import type { ImportResponse } from '../src/imports/report/import-view.js';
import { ADMIN_KEY, WEBHOOK_SECRET } from './support/app.js';
import { axeFindings, describeInBrowser, useBrowser } from './support/browser.js';
import type { Mirror } from './support/service.js';
import { useMirrors } from './support/service.js';
import { deliver, signed } from './support/webhook-requests.js';

/** A name that stands in one word, as long as it may be. */
const LONG = 'Wolfeschlegelsteinhausenbergerdorff'.repeat(2);

const LOOKS = [
  ['light', 1280],
  ['dark', 1280],
  ['light', 375],
] as const;

describeInBrowser('every page of the console', () => {
  const newMirror = useMirrors();
  const browser = useBrowser();
  let mirror: Mirror;
  let service: Service;
  let details: string[];

  const ids = async (statement: string) => (await mirror.sql<{ id: string }>(statement)).map(({ id }) => id);

  beforeAll(async () => {
    mirror = await newMirror({ platform: { webhookSecret: WEBHOOK_SECRET } });
    service = await mirror.start();
    const database = new pg.Client({ connectionString: mirror.database.url });
    await database.connect();
    await runWorkload({ service, simulator: mirror.simulator, database, adminKey: ADMIN_KEY }, 'a', 5, 2);
    await database.end();
    const person = { firstName: LONG, lastName: LONG, email: 'noor@example.org', providers: ['p-a-1'] };
    for (const id of ['C-1', LONG]) await service.call('PUT', `/v1/clients/${id}`, { body: person, wait: 20 });
    await deliver(service, signed('{"eventType":"SESSION_TELEPORTED"}'));
    await fetch(`${service.url}/webhooks/platform`, { method: 'POST', body: '{}' });
    const content = `externalId,email,firstName,lastName,nonsense\nP-9,no mail,${LONG},${LONG},x\nP-8,p@example.org,A,B,x`;
    const files = [{ name: 'providers.csv', type: 'text/csv', content }];
    const plan = await service.startImport('kind=providers&mode=snapshot&dryRun=true', files);
    await until('it is planned', async () => {
      const { body } = await service.call<ImportResponse>('GET', `/v1/imports/${plan.id}`, { wait: 1 });
      return body.state === 'planned';
    });
    const [session] = await ids('SELECT session::text AS id FROM session_documents LIMIT 1');
    const delivery = await until('the delivery was looked at', async () => {
      return (await ids("SELECT id::text FROM webhook_deliveries WHERE state = 'not-understood'"))[0];
    });
    const [entry] = await ids('SELECT id::text FROM audit_entries LIMIT 1');
    const [done] = await ids("SELECT id::text FROM imports WHERE state = 'completed'");
    details = [
      `/imports/${plan.id}`,
      `/imports/${plan.id}?outcome=rejected`,
      `/imports/${done}`,
      '/imports/new',
      `/people/client/${LONG}`,
      '/people?kind=provider&state=failed',
      '/people/client/nobody',
      `/sessions/${session}`,
      '/sessions?state=Unknown',
      `/deliveries/${delivery}`,
      '/deliveries/refused',
      `/audit?entry=${entry}`,
      '/nowhere',
    ];
  });

  /** What is wrong with what is shown, in each look: what axe finds, and whether a phone has to scroll sideways. */
  const faults = async (page: Page) => {
    await page.getByRole('heading').first().waitFor();
    await page.locator('.waiting').first().waitFor({ state: 'detached' });
    const found: string[] = [];
    for (const [colorScheme, width] of LOOKS) {
      await page.emulateMedia({ colorScheme });
      await page.setViewportSize({ width, height: 900 });
      const isWide = await page.evaluate('document.documentElement.scrollWidth > innerWidth');
      const faulty = [...(isWide ? ['wider than the window'] : []), ...(await axeFindings(page))];
      found.push(...faulty.map((fault) => `${colorScheme}, ${width} pixels: ${fault}`));
    }
    return found;
  };

  test('has no serious fault of accessibility in light, in dark and on a phone', async () => {
    const found: Record<string, string[]> = { '/sign-in': await faults(await browser.enter(service.url)) };
    const page = await browser.open(service.url);
    const links = await page.getByRole('navigation').getByRole('link').all();
    const places = await Promise.all(links.map(async (link) => (await link.getAttribute('href')) ?? ''));
    expect(places.length).toBeGreaterThan(6);
    for (const place of [...places, ...details.map((detail) => `/console${detail}`)]) {
      await page.goto(place);
      found[place] = await faults(page);
    }
    for (const [place, name] of [
      ['/keys', 'Make a key'],
      ['/deliveries', 'Replay a selection'],
      [details[0], 'Apply'],
      [`/people/client/${LONG}`, 'Link'],
    ] as const) {
      await page.goto(`/console${place}`);
      await page.getByRole('button', { name, exact: true }).click();
      await page.getByRole('dialog').waitFor();
      found[name] = await faults(page);
    }
    expect(Object.entries(found).filter(([, faulty]) => faulty.length > 0)).toEqual([]);
  });

  test('says what is wrong where the key lacks a scope', async () => {
    const made = await service.call<{ key: string }>('POST', '/v1/api-keys', {
      body: { name: 'k', scopes: ['imports'] },
    });
    const page = await browser.open(service.url, '/keys', made.body.key);
    await page.getByText('This key lacks the scope admin').waitFor();
    expect(await faults(page)).toEqual([]);
  });
});
