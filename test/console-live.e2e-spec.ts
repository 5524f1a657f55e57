import type { BrowserContext, Page } from 'playwright-core';
import { HANG_MS, until } from '../harness/until.js';
import { SOAP, useArrivingSessions } from './support/arriving-sessions.js';
import { describeInBrowser, useBrowser } from './support/browser.js';

/** Connections that a browser has to one host by HTTP/1.1. */
const CONNECTIONS_OF_A_BROWSER = 6;

describeInBrowser('the console', () => {
  const world = useArrivingSessions();
  const browser = useBrowser();
  let id: string;

  beforeAll(async () => {
    const session = world.newSession({ noteTemplateIds: [SOAP] });
    world.toEnd(session);
    await world.read(session, 1);
    await world.rested(session);
    id = (await world.show(session.sessionId)).id;
  });

  it('reads what shows a person when somebody asks for it, and never by itself', async () => {
    const page = await browser.open(world.service.url, `/sessions/${id}`);
    const reads: string[] = [];
    page.on('request', (request) => {
      if (new URL(request.url()).pathname.startsWith(`/v1/sessions/${id}`)) reads.push(request.url());
    });
    await page.getByRole('article').waitFor();
    await page.getByRole('button', { name: 'Live', exact: true }).waitFor();
    await until('all that the page shows is read', async () => (await page.locator('.waiting').count()) === 0);
    reads.splice(0);
    world.toEnd(world.newSession({ noteTemplateIds: [SOAP] }));
    const again = page.getByRole('button', { name: 'Changed: read again' });
    await again.waitFor();
    expect(reads).toEqual([]);
    // What more is told of that session would be another change.
    await page.getByRole('button', { name: 'Live', exact: true }).click();
    await page.getByRole('button', { name: 'Paused' }).waitFor();
    await again.click();
    await until('the notes are read again', () => reads.some((url) => url.endsWith('/notes')));
    await again.waitFor({ state: 'detached' });
  });

  it('follows nothing in a tab that is not seen, so that more tabs can be open than a browser has connections', async () => {
    const first = await browser.open(world.service.url);
    for (let tab = 0; tab < CONNECTIONS_OF_A_BROWSER; tab++) await hide(await anotherTab(first, tab));
    const last = await anotherTab(first, CONNECTIONS_OF_A_BROWSER);
    await last.goto('/console/keys');
    await last.getByRole('heading', { name: 'Keys' }).waitFor();
  });

  it('signs a browser out half an hour after it was last used in any of its tabs', async () => {
    const idle = await browser.open(world.service.url);
    await idle.clock.install();
    await idle.reload();
    const used = await anotherTab(idle, 0);
    for (const minutes of [20, 40]) {
      await idle.clock.fastForward('20:00');
      await used.mouse.move(minutes, minutes);
      await idle.clock.runFor('00:30');
      await used.getByRole('button', { name: 'Sign out' }).waitFor();
      await idle.getByRole('button', { name: 'Sign out' }).waitFor();
    }
    await idle.clock.fastForward('31:00');
    await idle.clock.runFor('00:30');
    await idle.getByText('Nobody used this browser for half an hour').waitFor();
    await used.getByLabel('API key').waitFor();
  });

  it('says when the service could not be told of a sign-out, and tells it again until it could', async () => {
    const page = await browser.open(world.service.url);
    const context = page.context();
    await context.route('**/v1/browser-session', (route) =>
      route.request().method() === 'DELETE' ? route.abort() : route.continue(),
    );
    await page.getByRole('button', { name: 'Sign out' }).click();
    await page.getByText('the service could not be told').waitFor();
    await statusIs(context, 200);
    await context.unroute('**/v1/browser-session');
    await page.getByText('You are signed out.').waitFor();
    await statusIs(context, 401);
  });

  const anotherTab = async (page: Page, tab: number) => {
    const next = await page.context().newPage();
    next.setDefaultTimeout(HANG_MS);
    await next.goto(`/console?tab=${tab}`);
    await next.getByRole('button', { name: 'Sign out' }).waitFor();
    return next;
  };

  /** A database that is late is 503 for a while. */
  const statusIs = async (context: BrowserContext, wanted: number) => {
    const status = await until('it is answered', async () => {
      const answer = await context.request.get(`${world.service.url}/v1/browser-session`, { timeout: HANG_MS });
      return answer.status() === 503 ? undefined : answer.status();
    });
    expect(status).toBe(wanted);
  };
});

/** As a browser tells a page that another tab covers; one without a screen never does. */
async function hide(page: Page): Promise<void> {
  await page.evaluate(`
    Object.defineProperty(document, 'hidden', { get: () => true });
    document.dispatchEvent(new Event('visibilitychange'));
  `);
}
