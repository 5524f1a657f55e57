import { startBehindProxy } from '../support/behind-proxy.js';
import { describeInBrowser, useBrowser } from '../support/browser.js';
import { useWorld } from '../world/use-world.js';

const world = useWorld();

describeInBrowser('the console', () => {
  const { open } = useBrowser();

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
