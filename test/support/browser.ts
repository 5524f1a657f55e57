import { readFileSync } from 'node:fs';
import { type Browser, type BrowserContextOptions, chromium, type Page } from 'playwright-core';
import { findChromium } from '../../harness/chromium.js';
import { ADMIN_KEY } from './app.js';

/** Timeout for the browser, and for each wait in a page. */
export const PAGE_TIMEOUT_MS = 40_000;

/** Timeout for a test. A test that looks at every page takes 20 s of two idle cores, and CI runs four suites at a time. */
const TEST_TIMEOUT_MS = 180_000;

const CHROMIUM = findChromium();

/** Suites of the console; `test/global-setup.mjs` says when they are skipped. */
export const describeInBrowser = CHROMIUM === undefined ? describe.skip : describe;

/** Width and height in CSS pixels. */
const DESKTOP = { width: 1280, height: 900 };

/** Resolves to this machine, but is not loopback for the browser, which rejects its Secure cookies over http. */
export const UNSAFE_HOST = 'console.test';

interface Browsing {
  /** Opens a page below /console in a new browser context, signed in with a key. */
  open(url: string, path?: string, key?: string, options?: BrowserContextOptions): Promise<Page>;
  /** Opens /console in a new browser context, signed out. */
  enter(url: string, options?: BrowserContextOptions): Promise<Page>;
}

/** Call it once per suite: its tests share one browser process. An error in a page's script fails the test. */
export function useBrowser(): Browsing {
  let browser: Browser;
  const faults: string[] = [];
  jest.setTimeout(TEST_TIMEOUT_MS);
  beforeAll(async () => {
    const args = ['--no-sandbox', '--disable-gpu', `--host-resolver-rules=MAP ${UNSAFE_HOST} 127.0.0.1`];
    browser = await chromium.launch({ executablePath: CHROMIUM, args, timeout: PAGE_TIMEOUT_MS });
  });
  afterEach(async () => {
    for (const context of browser.contexts()) await context.close();
    expect(faults.splice(0)).toEqual([]);
  });
  afterAll(() => browser?.close());
  const enter = async (url: string, options: BrowserContextOptions = {}) => {
    const context = await browser.newContext({ viewport: DESKTOP, baseURL: url, ...options });
    const page = await context.newPage();
    page.setDefaultTimeout(PAGE_TIMEOUT_MS);
    page.on('pageerror', (error) => faults.push(error.message));
    page.on('console', (message) => {
      // Violations of the page's policy; rejections by the API are part of the tests.
      if (/Content Security Policy|TrustedHTML/.test(message.text())) faults.push(message.text());
    });
    await page.goto('/console');
    return page;
  };
  const open = async (url: string, path = '/', key = ADMIN_KEY, options: BrowserContextOptions = {}) => {
    const page = await enter(url, options);
    await signIn(page, key);
    await page.getByRole('button', { name: 'Sign out' }).waitFor();
    if (path !== '/') await page.goto(`/console${path}`);
    return page;
  };
  return { open, enter };
}

/** Signs in on the sign-in page. */
export async function signIn(page: Page, key: string): Promise<void> {
  await page.getByLabel('API key').fill(key);
  await page.getByRole('button', { name: 'Sign in', exact: true }).click();
}

/** Enters the reason that an operation requires. */
export async function giveReason(page: Page, reason = 'TICKET-1042'): Promise<void> {
  const dialog = page.getByRole('dialog').filter({ has: page.getByLabel('Reason') });
  await dialog.getByLabel('Reason').fill(reason);
  await dialog.getByRole('button', { name: 'Continue' }).click();
}

const AXE = readFileSync(require.resolve('axe-core/axe.min.js'), 'utf8');

/** Serious and critical findings of axe in the current page, each with its places. @param rules defaults to all */
export async function axeFindings(page: Page, rules?: readonly string[]): Promise<string[]> {
  if (!(await page.evaluate('"axe" in globalThis'))) await page.evaluate(AXE);
  return page.evaluate(async (runOnly) => {
    interface Finding {
      id: string;
      impact: string | null;
      nodes: { target: unknown[]; failureSummary?: string }[];
    }
    const { axe } = globalThis as unknown as { axe: { run(options: object): Promise<{ violations: Finding[] }> } };
    const { violations } = await axe.run({ resultTypes: ['violations'], ...(runOnly && { runOnly }) });
    return violations
      .filter(({ impact }) => impact === 'serious' || impact === 'critical')
      .map(({ id, nodes }) => `${id}: ${nodes.map(({ target }) => target.join(' ')).join(', ')}`);
  }, rules);
}
