import type { SendingResponse } from '../../src/sending/sending.dto.js';
import { describeInBrowser, useBrowser } from '../support/browser.js';
import { useWorld } from '../world/use-world.js';

const world = useWorld();
const sending = async () => (await world.call<SendingResponse>('GET', '/v1/sending')).body;

describeInBrowser('the hold in the console', () => {
  const { open } = useBrowser();

  test('is set and released on the overview, and every page shows the hold', async () => {
    const page = await open(world.url, '/');
    const dialog = page.getByRole('dialog');
    await page.getByRole('button', { name: 'Hold sending' }).click();
    await dialog.getByLabel('Reason').fill('Mr Doe');
    await dialog.getByRole('button', { name: 'Hold sending' }).click();
    await dialog.locator('input:invalid').waitFor();
    await dialog.getByLabel('Reason').fill('CASE-7');
    await dialog.getByRole('button', { name: 'Hold sending' }).click();
    await page.getByText('Sending to the platform is held').waitFor();
    expect(await sending()).toMatchObject({ held: true, reason: 'CASE-7' });

    await page.getByRole('link', { name: 'Imports' }).click();
    await page.getByText('by admin (CASE-7). The platform is only read').waitFor();
    await page.getByRole('link', { name: 'Release it on the overview' }).click();
    await page.getByRole('button', { name: 'Release sending', exact: true }).click();
    await dialog.getByLabel('The database was restored').check();
    await dialog.getByRole('button', { name: 'Release sending', exact: true }).click();
    await page.getByRole('button', { name: 'Hold sending' }).waitFor();
    expect((await sending()).held).toBe(false);
    expect(await page.getByText('Sending to the platform is held').count()).toBe(0);
  });

  test('by HOLD_SENDING cannot be released', async () => {
    await world.restart({ HOLD_SENDING: 'true' });
    const page = await open(world.url, '/');
    await page.getByText('by the setting HOLD_SENDING').waitFor();
    await page.getByText('Remove it and restart, then release').waitFor();
    expect(await page.getByRole('button', { name: 'Release sending', exact: true }).count()).toBe(0);
  });
});
