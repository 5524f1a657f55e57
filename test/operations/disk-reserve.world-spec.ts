import { DiskReserve } from '../../src/access/guard/disk-reserve.js';
import { deliver, sessionEvent, signed } from '../support/webhook-requests.js';
import { useWorld } from '../world/use-world.js';

const world = useWorld();
const MIB = 1024 ** 2;

/** Starts a process whose database may grow by some bytes. */
async function withRoom(bytes: number) {
  const [{ size } = { size: 0 }] = await world.sql<{ size: number }>(
    'SELECT pg_database_size(current_database())::float8 AS size',
  );
  return world.startAnother({ DISK_RESERVE: '4 MiB', DATABASE_SIZE_LIMIT: String(size + bytes) });
}

describe('the disk reserve', () => {
  it.each([
    ['unused', 8 * MIB, [201, 200, 200]],
    ['in use', 3 * MIB, [507, 200, 200]],
    ['half used', MIB, [507, 507, 200]],
  ])('that is %s', async (_, bytes, [change, read, deletion]) => {
    const { url, app } = await withRoom(bytes);
    const headers = { authorization: 'Bearer admin-key-of-the-notebridge-tests', 'content-type': 'application/json' };
    const send = async (method: string, path: string, body?: object) =>
      (await fetch(url + path, { method, headers, body: body && JSON.stringify(body) })).status;
    await world.call('PUT', '/v1/providers/P-1', { body: { email: 'a@example.org', firstName: 'A', lastName: 'B' } });
    expect(await send('POST', '/v1/api-keys', { name: 'a', scopes: ['people:read'] })).toBe(change);
    expect(await send('GET', '/v1/providers')).toBe(read);
    expect(
      (await fetch(`${url}/v1/providers/P-1`, { method: 'DELETE', headers: { authorization: headers.authorization } }))
        .status,
    ).toBe(deletion);
    expect((await deliver({ url }, signed(sessionEvent('genuine')))).status).toBe(204);
    expect(await send('GET', '/health/live')).toBe(200);
    expect(app.get(DiskReserve, { strict: false }).health().status).toBe(change === 507 ? 'degraded' : 'ok');
  });

  it('is measured every ten seconds', async () => {
    const { url, app } = await withRoom(5 * MIB);
    const create = async () => {
      const headers = { authorization: 'Bearer admin-key-of-the-notebridge-tests', 'content-type': 'application/json' };
      const body = JSON.stringify({ name: 'a', scopes: ['people:read'] });
      return (await fetch(`${url}/v1/api-keys`, { method: 'POST', headers, body })).status;
    };
    expect(await create()).toBe(201);
    await world.sql(`CREATE TABLE filling AS SELECT repeat('x', 1000) FROM generate_series(1, 5000)`);
    await world.advance('10 s');
    const health = () => app.get(DiskReserve, { strict: false }).health().status;
    await world.eventually('it is measured', () => health() === 'degraded');
    expect(await create()).toBe(507);
    await world.sql('DROP TABLE filling');
  });
});
