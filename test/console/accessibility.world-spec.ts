import type { Page } from 'playwright-core';
import type { NewApiKeyResponse } from '../../src/access/keys/api-keys.dto.js';
import { submittedJobs } from '../compliance/submitted-jobs.js';
import { importsIn } from '../imports/imports.js';
import { useArrivingSessions } from '../sessions/arriving-sessions.js';
import { axeFindings, describeInBrowser, useBrowser } from '../support/browser.js';
import { useWorld } from '../world/use-world.js';

const world = useWorld({ settings: { PLATFORM_TIMEOUT_SECONDS: '60' }, platform: { processingEvents: false } });
const sessions = useArrivingSessions(world);
const imports = importsIn(world);
const jobs = submittedJobs(world);

/** One word, as long as a name may be. */
const LONG = 'Wolfeschlegelsteinhausenbergerdorff'.repeat(2);

/** Dark colours change nothing but contrast. */
const LOOKS = [
  ['light', 1280, undefined],
  ['dark', 1280, ['color-contrast']],
  ['light', 375, undefined],
] as const;

describeInBrowser('every page of the console', () => {
  const browser = useBrowser();

  /** The faults of the shown page in each look: axe's findings, and sideways scrolling on a phone. */
  const faults = async (page: Page) => {
    await page.getByRole('heading').first().waitFor();
    await page.locator('.waiting').first().waitFor({ state: 'detached' });
    const found: string[] = [];
    for (const [colorScheme, width, rules] of LOOKS) {
      await page.emulateMedia({ colorScheme });
      await page.setViewportSize({ width, height: 900 });
      const isWide = await page.evaluate('document.documentElement.scrollWidth > innerWidth');
      const faulty = [...(isWide ? ['wider than the window'] : []), ...(await axeFindings(page, rules))];
      found.push(...faulty.map((fault) => `${colorScheme}, ${width} pixels: ${fault}`));
    }
    return found;
  };
  const faultsOf = async (page: Page, places: string[]) => {
    const found: [string, string[]][] = [];
    for (const place of places) {
      await page.goto(`/console${place}`);
      found.push([place, await faults(page)]);
    }
    return found.filter(([, faulty]) => faulty.length > 0);
  };
  const idOf = async (sql: string) => {
    const [row] = await world.sql<{ id: string }>(`SELECT id::text AS id FROM ${sql} LIMIT 1`);
    if (!row) throw new Error(`There is no row in ${sql}.`);
    return row.id;
  };

  /** Fills every page. @returns the id of a plan with rejected rows */
  const fill = async () => {
    const session = sessions.newSession();
    sessions.toEnd(session);
    await sessions.read(session, 1);
    await jobs.unknownJob();
    const person = { firstName: LONG, lastName: LONG, email: 'noor@example.org', providers: ['p-1'] };
    for (const id of ['C-1', LONG]) await world.call('PUT', `/v1/clients/${id}`, { body: person });
    const { body } = await world.call<{ id: string }>('POST', '/v1/subscriptions', {
      body: { url: 'http://127.0.0.1:9/hook', after: '0' },
    });
    await world.settle();
    await world.call('POST', '/v1/subscriptions', { body: { url: 'https://ehr.example.org/hook', description: LONG } });
    await world.call('POST', `/v1/subscriptions/${body.id}/test`);
    world.platform.simulator.state.deliveries.send({ eventType: 'SESSION_TELEPORTED' } as never);
    await fetch(`${world.url}/webhooks/platform`, { method: 'POST', body: '{}' });
    const columns = 'externalId,email,firstName,lastName';
    const files = (content: string) => [{ name: 'providers.csv', type: 'text/csv', content }];
    await imports.imported('kind=providers', files(`${columns}\nP-7,p7@example.org,A,B\nP-6,no mail,A,B`));
    const rows = `P-9,no mail,${LONG},${LONG},x\nP-8,p@example.org,A,B,x`;
    return (await imports.planned('kind=providers&mode=snapshot&dryRun=true', files(`${columns},nonsense\n${rows}`)))
      .id;
  };

  test('its lists have no serious fault of accessibility in light, in dark and on a phone', async () => {
    await fill();
    expect(await faults(await browser.enter(world.url))).toEqual([]);
    const page = await browser.open(world.url);
    const links = await page.getByRole('navigation').getByRole('link').all();
    const places = await Promise.all(links.map(async (link) => (await link.getAttribute('href')) ?? ''));
    expect(places.length).toBeGreaterThan(6);
    const paths = places.map((place) => place.replace(/^\/console/, ''));
    const lists = ['/people?kind=provider&state=failed', '/sessions?state=Unknown', '/nowhere'];
    expect(await faultsOf(page, [...paths, ...lists])).toEqual([]);
  });

  test('its details and dialogs have no serious fault of accessibility', async () => {
    const plan = await fill();
    const page = await browser.open(world.url);
    const details = [
      `/imports/${plan}`,
      `/imports/${plan}?outcome=rejected`,
      `/imports/${await idOf("imports WHERE state = 'completed'")}`,
      '/imports/new',
      `/people/client/${LONG}`,
      '/people/client/nobody',
      `/sessions/${await idOf('sessions')}`,
      `/compliance/${await idOf('compliance_jobs')}`,
      `/deliveries/${await idOf("webhook_deliveries WHERE state = 'not-understood'")}`,
      `/subscriptions/${await idOf('subscriptions WHERE attempts > 0')}`,
      `/audit?entry=${await idOf('audit_entries')}`,
    ];
    expect(await faultsOf(page, details)).toEqual([]);
    for (const [place, name] of [
      ['/keys', 'Create key'],
      ['/deliveries', 'Replay by filter'],
      [`/imports/${plan}`, 'Apply'],
      [`/people/client/${LONG}`, 'Link'],
      [`/compliance/${await idOf('compliance_jobs')}`, 'Link'],
    ] as const) {
      await page.goto(`/console${place}`);
      await page.getByRole('button', { name, exact: true }).click();
      await page.getByRole('dialog').waitFor();
      expect([name, await faults(page)]).toEqual([name, []]);
    }
  });

  test('names the scope that the key lacks', async () => {
    const body = { name: 'k', scopes: ['imports'] };
    const { key } = (await world.call<NewApiKeyResponse>('POST', '/v1/api-keys', { body })).body;
    const page = await browser.open(world.url, '/keys', key);
    await page.getByText('You need the scope admin').waitFor();
    expect(await faults(page)).toEqual([]);
  });
});
