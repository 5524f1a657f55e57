import type { BrowserContext, Page } from 'playwright-core';
import { useArrivingSessions } from '../sessions/arriving-sessions.js';
import { describeInBrowser, PAGE_TIMEOUT_MS, useBrowser } from '../support/browser.js';
import { SOAP } from '../world/mirrored-people.js';
import { useWorld } from '../world/use-world.js';

const world = useWorld({ settings: { PLATFORM_TIMEOUT_SECONDS: '60' }, platform: { processingEvents: false } });
const sessions = useArrivingSessions(world);

describeInBrowser('an open page of the console', () => {
  const browser = useBrowser();
  const button = (page: Page, name: string) => page.getByRole('button', { name, exact: true });

  test('reads personal data again only on request', async () => {
    const session = sessions.newSession({ noteTemplateIds: [SOAP] });
    sessions.toEnd(session);
    await sessions.read(session, 1);
    const { id } = await sessions.show(session.sessionId);
    const page = await browser.open(world.url, `/sessions/${id}`);
    await page.getByRole('article').waitFor();
    await button(page, 'Live').waitFor();
    await page.locator('.waiting').first().waitFor({ state: 'detached' });
    const reads: string[] = [];
    page.on('request', (request) => {
      if (new URL(request.url()).pathname.startsWith(`/v1/sessions/${id}`)) reads.push(request.url());
    });
    sessions.toEnd(sessions.newSession({ noteTemplateIds: [SOAP] }));
    await world.settle();
    await world.advance('3 s');
    const again = button(page, 'New data: reload');
    await again.waitFor();
    expect(reads).toEqual([]);
    const read = page.waitForRequest(/\/notes$/);
    await again.click();
    await read;
    await again.waitFor({ state: 'detached' });
  });

  test('asks for nothing in a hidden tab, so that many tabs can be open', async () => {
    const page = await browser.open(world.url);
    await page.clock.install();
    await page.reload();
    await button(page, 'Live').waitFor();
    const asked: string[] = [];
    page.on('request', (request) => void asked.push(new URL(request.url()).pathname));
    await page.clock.runFor('00:05');
    expect(asked).toContain('/v1/overview');
    await hide(page);
    asked.length = 0;
    await page.clock.runFor('00:29');
    expect(asked).not.toContain('/v1/overview');
  });

  test('signs out 30 minutes after the browser was last used in any tab', async () => {
    const idle = await browser.open(world.url);
    await idle.clock.install();
    await idle.reload();
    const used = await anotherTab(idle, 0);
    for (const minutes of [20, 40]) {
      await idle.clock.fastForward('20:00');
      await used.mouse.move(minutes, minutes);
      await idle.clock.runFor('00:30');
      await button(used, 'Sign out').waitFor();
      await button(idle, 'Sign out').waitFor();
    }
    await idle.clock.fastForward('31:00');
    await idle.clock.runFor('00:30');
    await idle.getByText('this browser was unused for 30 minutes').waitFor();
    await used.getByLabel('API key').waitFor();
  });

  test('repeats a sign-out that failed until the service accepts it', async () => {
    const page = await browser.open(world.url);
    const context = page.context();
    await context.route('**/v1/browser-session', (route) =>
      route.request().method() === 'DELETE' ? route.abort() : route.continue(),
    );
    await button(page, 'Sign out').click();
    await page.getByText('because the service cannot be reached').waitFor();
    expect(await statusOf(context)).toBe(200);
    await context.unroute('**/v1/browser-session');
    await page.getByText('You are signed out.').waitFor();
    expect(await statusOf(context)).toBe(401);
  });

  const statusOf = async (context: BrowserContext) =>
    (await context.request.get(`${world.url}/v1/browser-session`)).status();

  const anotherTab = async (page: Page, tab: number) => {
    const next = await page.context().newPage();
    next.setDefaultTimeout(PAGE_TIMEOUT_MS);
    await next.goto(`/console?tab=${tab}`);
    await button(next, 'Sign out').waitFor();
    return next;
  };
});

/** Tells the page that another tab covers it, because a browser without a screen never does. */
async function hide(page: Page): Promise<void> {
  await page.evaluate(`
    Object.defineProperty(document, 'visibilityState', { get: () => 'hidden' });
    document.dispatchEvent(new Event('visibilitychange'));
  `);
}
