import { ADMIN_KEY } from '../support/app.js';
import { deliver, sessionEvent, signed } from '../support/webhook-requests.js';
import { useWorld } from '../world/use-world.js';

const world = useWorld();

describe('with too many requests of one caller', () => {
  it('answers 429 to that caller only, and never to the platform', async () => {
    const service = await world.startAnother({ REQUESTS_PER_CALLER: '2' });
    const get = async (path: string, headers: Record<string, string> = {}) => {
      const { status } = await fetch(service.url + path, { headers });
      return status;
    };
    const key = { authorization: `Bearer ${ADMIN_KEY}` };
    const many = (path: string, headers?: Record<string, string>) =>
      Promise.all(Array.from({ length: 30 }, () => get(path, headers)));
    const [byKey, byAddress, waiting, delivered] = await Promise.all([
      many('/v1/clients', key),
      many('/health/ready'),
      many('/v1/capabilities', { ...key, prefer: 'wait=1' }),
      deliver(service, signed(sessionEvent('beside'))),
    ]);
    expect(new Set(byKey)).toEqual(new Set([200, 429]));
    expect(new Set(byAddress)).toEqual(new Set([200, 429]));
    expect(new Set(waiting)).toEqual(new Set([200]));
    expect(delivered.status).toBe(204);
    expect([await get('/v1/clients', key), await get('/health/ready')]).toEqual([200, 200]);
  });
});
