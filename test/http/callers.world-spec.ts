import { once } from 'node:events';
import type { IncomingMessage, ServerResponse } from 'node:http';
import type { WorldService } from '../../harness/world/world-service.js';
import type { NewApiKeyResponse } from '../../src/access/keys/api-keys.dto.js';
import { HealthChecks } from '../../src/operations/health-checks.js';
import { PeopleService } from '../../src/people/api/people.service.js';
import { ADMIN_KEY } from '../support/app.js';
import { deliver, sessionEvent, signed } from '../support/webhook-requests.js';
import { useWorld } from '../world/use-world.js';

const world = useWorld();

const bearer = (key: string) => ({ authorization: `Bearer ${key}` });
const from = (source: string) => ({ 'x-forwarded-for': source });

describe('with too many requests of one caller', () => {
  it('answers 429 to that caller only, and never to the platform', async () => {
    const service = await world.startAnother({ REQUESTS_PER_CALLER: '2' });
    const get = async (path: string, headers: Record<string, string> = {}) => {
      const { status } = await fetch(service.url + path, { headers });
      return status;
    };
    const key = bearer(ADMIN_KEY);
    const many = (path: string, headers?: Record<string, string>) =>
      Promise.all(Array.from({ length: 30 }, () => get(path, headers)));
    const [byKey, byAddress, waiting, delivered] = await Promise.all([
      many('/v1/clients', key),
      many('/health/ready'),
      many('/v1/capabilities', { ...key, prefer: 'wait=1' }),
      deliver(service, signed(sessionEvent('genuine'))),
    ]);
    expect(new Set(byKey)).toEqual(new Set([200, 429]));
    expect(new Set(byAddress)).toEqual(new Set([200, 429]));
    expect(new Set(waiting)).toEqual(new Set([200]));
    expect(delivered.status).toBe(204);
    expect([await get('/v1/clients', key), await get('/health/ready')]).toEqual([200, 200]);
  });

  describe('while one is in progress', () => {
    let service: WorldService;
    let leave: () => Promise<void>;
    const [one, near, far] = [bearer(ADMIN_KEY), from('198.51.100.7'), from('203.0.113.9')];

    beforeEach(async () => {
      service = await world.startAnother({ REQUESTS_PER_CALLER: '1', TRUSTED_PROXIES: '127.0.0.1' });
    });
    const get = async (path: string, headers: Record<string, string>) =>
      (await fetch(service.url + path, { headers })).status;
    /** Begins a request that a spied method answers. The service never answers it; `leave` hangs up. */
    async function begin(path: string, headers: Record<string, string>, answering: jest.SpyInstance): Promise<void> {
      answering.mockImplementation(() => new Promise<never>(() => undefined));
      const asked = once(service.app.getHttpServer(), 'request') as Promise<[IncomingMessage, ServerResponse]>;
      const leaving = new AbortController();
      fetch(service.url + path, { headers, signal: leaving.signal }).catch(() => undefined);
      const [, response] = await asked;
      await world.eventually('it is in progress', () => answering.mock.calls.length > 0);
      leave = async () => {
        leaving.abort();
        await once(response, 'close');
      };
    }

    it('refuses another of this key only, until a second after its caller hung up', async () => {
      const body = { name: 'another', scopes: ['people:read'] };
      const other = bearer((await world.call<NewApiKeyResponse>('POST', '/v1/api-keys', { body })).body.key);
      await begin('/v1/providers/p-1', one, jest.spyOn(service.app.get(PeopleService, { strict: false }), 'show'));
      expect([await get('/v1/capabilities', one), await get('/v1/capabilities', other)]).toEqual([429, 200]);
      await leave();
      expect(await get('/v1/capabilities', one)).toBe(429);
      await world.advance('1 s');
      expect(await get('/v1/capabilities', one)).toBe(200);
    });

    it('refuses another probe of this source only, and no other request of it', async () => {
      await begin('/health/ready', near, jest.spyOn(service.app.get(HealthChecks, { strict: false }), 'report'));
      const statuses = [await get('/health/live', near), await get('/health/live', far)];
      expect([...statuses, await get('/openapi.json', near)]).toEqual([429, 200, 200]);
      await leave();
    });
  });
});
