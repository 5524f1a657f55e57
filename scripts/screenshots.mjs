// npm run screenshots: pictures of the console's pages for docs/images, of the demo that runs: light, dark and as a
// phone shows them.
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import path from 'node:path';
import { root } from './processes.mjs';

const require = createRequire(import.meta.url);

const LOOKS = {
  light: { colorScheme: 'light', viewport: { width: 1280, height: 800 } },
  dark: { colorScheme: 'dark', viewport: { width: 1280, height: 800 } },
  phone: { colorScheme: 'light', viewport: { width: 390, height: 844 }, deviceScaleFactor: 1.5 },
};

/** What is shown: its address below /console, and what is done there before the picture is taken. */
const pagesOf = ({ importId, sessionId }) => ({
  overview: ['/'],
  imports: ['/imports'],
  import: [`/imports/${importId}`],
  'import-rejected': [
    `/imports/${importId}?outcome=rejected`,
    (page) => toTop(page.getByRole('heading', { name: 'Rows rejected' })),
  ],
  people: ['/people'],
  person: ['/people/client/C-1006'],
  sessions: ['/sessions'],
  session: [`/sessions/${sessionId}`],
  'session-notes': [`/sessions/${sessionId}`, compareNotes],
  'session-timeline': [
    `/sessions/${sessionId}`,
    async (page) => {
      await page.getByRole('table', { name: /^Timeline/ }).waitFor();
      await toTop(page.getByRole('heading', { name: 'Timeline' }));
    },
  ],
  deliveries: ['/deliveries'],
  audit: ['/audit'],
  keys: ['/keys'],
});

const toTop = (place) => place.evaluate((element) => element.scrollIntoView());

async function compareNotes(page) {
  await page
    .getByRole('button', { name: /^Revisions/ })
    .first()
    .click();
  await page.locator('ins').first().waitFor();
  await toTop(page.getByRole('heading', { name: 'Notes' }));
}

/** @param names of pages; all of them when there are none @param folder where the pictures go */
export async function takeScreenshots(names, folder = path.join(root, 'docs/images')) {
  const { chromium } = require('playwright-core');
  const { findChromium } = require('../dist/harness/chromium.js');
  const executablePath = findChromium();
  if (!executablePath) throw new Error('There is no Chromium: install it (Debian: apt-get install chromium).');
  const demo = JSON.parse(readFileSync(path.join(root, '.data/demo.json'), 'utf8'));
  const pages = Object.entries(pagesOf(await whatToShow(demo)));
  mkdirSync(folder, { recursive: true });
  const browser = await chromium.launch({ executablePath, args: ['--no-sandbox'] });
  for (const [look, options] of Object.entries(LOOKS)) {
    const page = await (await browser.newContext({ baseURL: demo.url, ...options })).newPage();
    page.setDefaultTimeout(15_000);
    const take = async (name) => {
      if (names.length > 0 && !names.includes(name)) return;
      writeFileSync(path.join(folder, `${name}-${look}.webp`), await webp(page));
    };
    await page.goto('/console');
    await page.getByLabel('API key').waitFor();
    await take('sign-in');
    await page.getByLabel('API key').fill(demo.key);
    await page.getByRole('button', { name: 'Sign in' }).click();
    await page.getByRole('button', { name: 'Sign out' }).waitFor();
    for (const [name, [place, prepare]] of pages) {
      if (names.length > 0 && !names.includes(name)) continue;
      await page.goto(`/console${place}`);
      await page.getByRole('heading', { level: 1 }).waitFor();
      await page.locator('.waiting').first().waitFor({ state: 'detached' });
      await page.getByRole('button', { name: 'Live' }).waitFor();
      await prepare?.(page);
      await take(name);
    }
  }
  await browser.close();
}

/** A picture of what the page shows; Playwright itself makes no WebP, which is a third of a PNG. */
async function webp(page) {
  const chromium = await page.context().newCDPSession(page);
  const { data } = await chromium.send('Page.captureScreenshot', { format: 'webp', quality: 80 });
  await chromium.detach();
  return Buffer.from(data, 'base64');
}

/** An import of the demo with rejected rows, and a session of which there are two revisions of notes. */
async function whatToShow({ url, key, environment }) {
  const ask = async (place) =>
    (await (await fetch(url + place, { headers: { authorization: `Bearer ${key}` } })).json()).items ?? [];
  const importId = (await ask('/v1/imports')).find(({ counts }) => counts.created > 0)?.id;
  const session = async () => (await ask('/v1/sessions?appointment=demo-text'))[0];
  const { sessionId, id } = (await session()) ?? {};
  if (!importId || !id) throw new Error('The demo has not come to its end yet; wait for it.');
  const again = `${environment.PLATFORM_BASE_URL}/_simulator/sessions/${sessionId}/regenerate`;
  if ((await session()).notesRevision < 2) await fetch(again, { method: 'POST' });
  for (let left = 60; left > 0 && (await session()).notesRevision < 2; left -= 1)
    await new Promise((resolve) => setTimeout(resolve, 500));
  return { importId, sessionId: id };
}
