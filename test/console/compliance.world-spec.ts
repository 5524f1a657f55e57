import type { Page } from 'playwright-core';
import type { NewApiKeyResponse } from '../../src/access/keys/api-keys.dto.js';
import { submittedJobs } from '../compliance/submitted-jobs.js';
import { axeFindings, describeInBrowser, useBrowser } from '../support/browser.js';
import { useWorld } from '../world/use-world.js';

const world = useWorld({ settings: { PLATFORM_TIMEOUT_SECONDS: '60' } });
const { post, finish, unknownJob, show } = submittedJobs(world);

const newKey = async (...scopes: string[]) =>
  (await world.call<NewApiKeyResponse>('POST', '/v1/api-keys', { body: { name: 'browser', scopes } })).body.key;

describeInBrowser('compliance jobs in the console', () => {
  const browser = useBrowser();

  /** axe's findings on a desktop and, in the dark, on a phone. */
  const faults = async (page: Page) => {
    const desktop = await axeFindings(page);
    await page.emulateMedia({ colorScheme: 'dark' });
    await page.setViewportSize({ width: 375, height: 900 });
    const isWide = await page.evaluate('document.documentElement.scrollWidth > innerWidth');
    const found = [...desktop, ...(await axeFindings(page)), ...(isWide ? ['wider than the window'] : [])];
    await page.setViewportSize({ width: 1280, height: 900 });
    return found;
  };

  test('are listed by state, and shown with their result', async () => {
    const page = await browser.open(world.url, '/compliance');
    await page.getByText('There are no jobs yet.').waitFor();
    expect(await faults(page)).toEqual([]);

    const { body: done } = await post();
    await finish(done.jobId);
    const [unknown] = await unknownJob();
    await page.reload();
    await page.getByRole('link', { name: done.id }).waitFor();
    await page.getByLabel('Needs attention').selectOption('submission-unknown');
    await page.getByRole('button', { name: 'Search' }).click();
    await page.waitForURL(/review=submission-unknown/);
    await page.getByRole('link', { name: unknown.id }).waitFor();
    await page.getByRole('link', { name: done.id }).waitFor({ state: 'detached' });
    await page.getByRole('button', { name: 'Show all' }).click();
    await page.getByRole('link', { name: done.id }).click();
    await page.getByRole('region', { name: 'Facts' }).getByText('Completed').waitFor();
    const result = page.getByRole('region', { name: 'Result' });
    await result.getByText('Status', { exact: true }).waitFor();
    expect(await page.getByRole('region', { name: 'Resolve this job' }).count()).toBe(0);
    expect(await faults(page)).toEqual([]);

    const reader = await browser.open(world.url, `/compliance/${done.id}`, await newKey('compliance'));
    await reader.getByRole('region', { name: 'Result' }).getByText('notes:read').waitFor();
    expect(await reader.getByText('Status', { exact: true }).count()).toBe(0);
    const stranger = await browser.open(world.url, '/compliance', await newKey('imports'));
    await stranger.getByText('You need the scope compliance').waitFor();
  });

  test('are resolved with the effect of each choice', async () => {
    const [unknown, made] = await unknownJob();
    const page = await browser.open(world.url, `/compliance/${unknown.id}`);
    await page.getByText('The platform did not answer the submission.').waitFor();
    await page.getByText('Ends the job without a result.').waitFor();
    await page.getByRole('button', { name: 'Link', exact: true }).click();
    const dialog = page.getByRole('dialog');
    await dialog.getByLabel('Id of the job on the platform').fill(made.jobId);
    expect(await axeFindings(page)).toEqual([]);
    await dialog.getByRole('button', { name: 'Link' }).click();
    await world.workWhile(dialog.waitFor({ state: 'detached' }));
    await page.getByRole('region', { name: 'Facts' }).getByText('Submitted').waitFor();
    expect((await show(unknown.id)).jobId).toBe(made.jobId);
  });

  test('are paged, and say what failed', async () => {
    await world.sql(
      `INSERT INTO compliance_jobs (id, state, created_at, updated_at)
       SELECT id, 'Abandoned', at, at FROM (
         SELECT gen_random_uuid() AS id, timestamptz '2026-01-01' + n * interval '1 second' AS at
         FROM generate_series(1, 10000) AS n) AS job`,
    );
    const page = await browser.open(world.url, '/compliance');
    const rows = page.getByRole('table').locator('tbody tr');
    await rows.first().waitFor();
    const first = await rows.count();
    expect(first).toBeLessThanOrEqual(200);
    await page.getByRole('button', { name: 'Show more' }).click();
    await rows.nth(first).waitFor();
    await page.route('**/v1/compliance/jobs*', (route) =>
      route.fulfill({ status: 503, json: { detail: 'Try later.' } }),
    );
    await page.reload();
    await page.getByRole('alert').getByRole('button', { name: 'Try again' }).waitFor();
    await page.unroute('**/v1/compliance/jobs*');
    await page.getByRole('button', { name: 'Try again' }).click();
    await rows.first().waitFor();
  });
});
