import type { NewApiKeyResponse } from '../../src/access/keys/api-keys.dto.js';
import { startBehindProxy } from '../support/behind-proxy.js';
import { describeInBrowser, useBrowser } from '../support/browser.js';
import { useWorld } from '../world/use-world.js';

const world = useWorld();

/** The parts of a moment in UTC. */
const timeOf = (ms: number) => {
  const [hour, minute] = new Date(ms).toISOString().slice(11).split(':');
  return { hour, minute };
};

/** Lets calls of one operation pause since an hour ago: a part fails on which no other depends. */
async function failPart(): Promise<void> {
  const now = world.now().getTime();
  await world.sql(
    `INSERT INTO platform_pauses (key, paused_until, reason, status, failing_since)
     VALUES ('createClient', $1, 'elsewhere', 403, $2)`,
    [new Date(now + 600_000), new Date(now - 3_600_000)],
  );
}

describeInBrowser('the console', () => {
  const { open, enter } = useBrowser();

  test('shows on an open page which part fails, since when and what to do, and removes that when it works again', async () => {
    const page = await open(world.url, '/keys', undefined, { timezoneId: 'UTC', locale: 'en-GB' });
    const faults = page.getByRole('region', { name: 'Faults' });
    expect(await faults.count()).toBe(0);
    await failPart();
    await faults.getByText('The platform rejects PLATFORM_API_KEY: createClient').waitFor();
    const [text, { hour, minute }] = [await faults.textContent(), timeOf(world.now().getTime() - 3_600_000)];
    expect(text).toMatch(/^platform The platform rejects .+Correct the key and restart.+ Since /);
    expect(text).toContain(` ${hour}:${minute}:`);
    expect(text).toContain('UTC.');
    await world.sql('DELETE FROM platform_pauses');
    await faults.waitFor({ state: 'detached' });
  });

  test('tells other callers only that something fails, and shows no banner for open decisions', async () => {
    const body = { name: 'k', scopes: ['imports'] };
    const { key } = (await world.call<NewApiKeyResponse>('POST', '/v1/api-keys', { body })).body;
    await world.sql(
      `INSERT INTO webhook_deliveries (signature, body, sent_at, secret_index, subject, state, due_at) VALUES ('s', 'b', 0, 0, 's-1', 'dead', NULL)`,
    );
    const page = await open(world.url, '/imports', key);
    await page.getByRole('heading', { name: 'Imports' }).waitFor();
    expect(await page.getByRole('region', { name: 'Faults' }).count()).toBe(0);
    await failPart();
    for (const each of [page, await enter(world.url)]) {
      await each.reload();
      const faults = each.getByRole('region', { name: 'Faults' });
      await faults.getByText('Some parts of notebridge do not work.').waitFor();
      expect(await faults.textContent()).not.toMatch(/platform|createClient/i);
    }
  });

  test('names a missing worker at the top of every page', async () => {
    const api = await world.startAnother({ ROLES: 'api' });
    await world.sql(
      `UPDATE workers SET alive_until = alive_until - interval '40 seconds' WHERE 'worker' = ANY (roles)`,
    );
    const page = await open(api.url);
    const faults = page.getByRole('region', { name: 'Faults' });
    await faults.getByText('No process with the role worker is running.').waitFor();
    await faults.getByText(/ROLES must contain worker.+Since .+\. Affected: .*people/).waitFor();
    expect(await page.getByText('Providers and clients are mirrored.').count()).toBe(0);
    await page.getByRole('link', { name: 'Imports' }).click();
    await page.getByRole('heading', { name: 'Imports' }).waitFor();
    expect(await faults.isVisible()).toBe(true);
  });

  test('names an unreachable database, and calls nothing healthy next to it', async () => {
    const { proxy, service } = await startBehindProxy(world);
    try {
      const page = await open(service.url);
      await page.getByText('Everything works.').waitFor();
      await proxy.cut();
      await page.getByRole('region', { name: 'Faults' }).getByText('PostgreSQL cannot be reached').waitFor();
      await page.getByText('Nothing can be stored, so requests are rejected.').waitFor();
      expect(await page.getByText('ok', { exact: true }).count()).toBe(0);
      await proxy.restore();
      await page.reload();
      await page.getByText('System health').waitFor();
    } finally {
      await proxy.close();
    }
  });
});
