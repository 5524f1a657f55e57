import type { Page } from 'playwright-core';
import { status } from '../../harness/push-receiver.js';
import { usePushes } from '../subscriptions/pushed.js';
import { ADMIN_KEY } from '../support/app.js';
import { describeInBrowser, giveReason, useBrowser } from '../support/browser.js';
import { useWorld } from '../world/use-world.js';

const world = useWorld();
const pushes = usePushes(world);

describeInBrowser('the page of subscriptions', () => {
  const browser = useBrowser();
  const open = () => browser.open(world.url, '/subscriptions', ADMIN_KEY);
  /** Presses a button of the list, and the button of its dialog with the same label. */
  const confirm = async (page: Page, label: string) => {
    await page.getByRole('button', { name: label }).click();
    await page.getByRole('dialog').getByRole('button', { name: label }).click();
  };

  test('tests, skips, pauses and resumes', async () => {
    const { id } = await pushes.subscribe();
    pushes.receiver.respond = status(500);
    await pushes.append(2);
    await world.settle();
    const page = await open();
    await page.getByText('Failed: it answered with an error (500)').waitFor();
    await page.getByText('Failed attempts: 1.').waitFor();
    pushes.receiver.respond = status(204);
    await page.getByRole('button', { name: 'Send test' }).click();
    await page.getByText('Accepted (204)').waitFor();

    await confirm(page, 'Skip');
    await page.getByRole('dialog').waitFor({ state: 'hidden' });
    await world.settle();
    expect(pushes.receiver.taken.filter((cursor) => cursor.startsWith('1-'))).toEqual(['1-2']);
    await page.reload();
    await confirm(page, 'Pause');
    await page.getByText('Paused by a user.').waitFor();
    expect(await pushes.read(id)).toMatchObject({ state: 'paused' });
    await confirm(page, 'Resume');
    await page.getByRole('button', { name: 'Pause' }).waitFor();
    expect(await pushes.read(id)).toMatchObject({ state: 'active' });
  });

  test('shows the names of headers, and the last attempts', async () => {
    await pushes.subscribe({ headers: { 'x-gateway-key': 'g-1' } });
    pushes.receiver.respond = status(500);
    await pushes.append(1);
    await world.settle();
    const page = await open();
    await page.getByText('Headers: x-gateway-key').waitFor();
    await page.getByRole('link', { name: 'Last attempts' }).click();
    await page.getByRole('row', { name: /person\.synced, 1-1 Failed: it answered with an error \(500\)/ }).waitFor();
    await page.getByRole('link', { name: 'All subscriptions' }).click();
    await page.getByText('Headers: x-gateway-key').waitFor();
  });

  test('asks where to continue if events are gone, also while it is paused', async () => {
    const { id } = await pushes.subscribe();
    await pushes.patch(id, { paused: true });
    await pushes.append(3);
    await world.sql('INSERT INTO feed_state (pruned_to) VALUES (2)');
    const page = await open();
    await page.getByText('Cursor expired').waitFor();
    await confirm(page, 'Resume');
    await giveReason(page);
    await page.getByRole('button', { name: 'Pause' }).waitFor();
    await world.settle();
    expect(pushes.receiver.taken).toEqual(['1-3']);
  });
});
