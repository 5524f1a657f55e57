// npm run screenshots: takes the pictures that the documentation shows (docs/images) from the running demo.
import { readFileSync, writeFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import path from 'node:path';
import { root } from './processes.mjs';

const require = createRequire(import.meta.url);

export async function takeScreenshots() {
  const { chromium } = require('playwright-core');
  const { findChromium } = require('../dist/harness/chromium.js');
  const executablePath = findChromium();
  if (!executablePath) throw new Error('There is no Chromium: install it (Debian: apt-get install chromium).');
  const demo = JSON.parse(readFileSync(path.join(root, '.data/demo.json'), 'utf8'));
  const { importId, sessionId } = await whatToShow(demo);
  const browser = await chromium.launch({ executablePath, args: ['--no-sandbox'] });
  const page = await browser.newPage({ baseURL: demo.url, viewport: { width: 1280, height: 800 } });
  page.setDefaultTimeout(15_000);
  await page.goto('/console');
  await page.getByLabel('API key').fill(demo.key);
  await page.getByRole('button', { name: 'Sign in' }).click();
  await page.getByRole('button', { name: 'Sign out' }).waitFor();
  const open = async (place) => {
    await page.goto(`/console${place}`);
    await page.getByRole('heading', { level: 1 }).waitFor();
    await page.locator('.waiting').first().waitFor({ state: 'detached' });
    await page.getByRole('button', { name: 'Live' }).waitFor();
  };
  const take = async (name) => writeFileSync(path.join(root, `docs/images/${name}.webp`), await webp(page));
  await open('/');
  await take('overview');
  await open(`/imports/${importId}`);
  await take('import');
  await open('/people/client/C-1006');
  await take('person');
  await open(`/sessions/${sessionId}`);
  await compareNotes(page);
  await take('session-notes');
  await browser.close();
}

async function compareNotes(page) {
  await page
    .getByRole('button', { name: /^Revisions/ })
    .first()
    .click();
  await page.locator('ins').first().waitFor();
  await page.getByRole('heading', { name: 'Notes' }).evaluate((element) => element.scrollIntoView());
}

/** A WebP picture of the page, a third of the size of a PNG. Playwright itself cannot write WebP. */
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
