import { once } from 'node:events';
import { createConnection } from 'node:net';
import { until } from '../harness/until.js';
import { useSharedService } from './support/shared-service.js';

const shared = useSharedService({ env: { ROLES: 'api' } });

/** Every operation of the API, with ids in the place of parameters. */
async function operations(): Promise<[method: string, path: string][]> {
  type Paths = Record<string, Record<string, unknown>>;
  const { body } = await shared.service.call<{ paths: Paths }>('GET', '/openapi.json');
  return Object.entries(body.paths).flatMap(([path, methods]) =>
    Object.keys(methods).map((method): [string, string] => [method.toUpperCase(), path.replace(/\{\w+\}/g, 'x')]),
  );
}

/** The status of a request whose body never comes; again while the database has no time for it, as a caller should. */
const statusOf = (method: string, path: string, key?: string): Promise<number> =>
  until('it is answered for good', async () => {
    const status = await oneStatusOf(method, path, key);
    return status === 503 ? undefined : status;
  });

async function oneStatusOf(method: string, path: string, key?: string): Promise<number> {
  const socket = createConnection(Number(new URL(shared.service.url).port), '127.0.0.1');
  const headers = [
    'host: x',
    'content-type: application/json',
    ...(method === 'GET' ? [] : ['content-length: 1000']),
    ...(key === undefined ? [] : [`authorization: Bearer ${key}`]),
  ];
  socket.write(`${method} ${path} HTTP/1.1\r\n${headers.join('\r\n')}\r\n\r\n`);
  const [answer] = (await once(socket, 'data')) as [Buffer];
  socket.destroy();
  return Number(answer.toString('latin1').slice(9, 12));
}

describe('key and scope are judged before the body is read', () => {
  it('of every route but those of health: 401 without a key', async () => {
    const all = await operations();
    expect(all.length).toBeGreaterThan(40);
    const open = [];
    for (const [method, path] of all) {
      if ((await statusOf(method, path)) !== 401) open.push(`${method} ${path}`);
    }
    expect(open).toEqual(['GET /health/live', 'GET /health/ready']);
  });

  it('of every route: 403 with a key of another scope', async () => {
    const keyOf = async (scope: string) => {
      const body = { name: scope, scopes: [scope] };
      return (await shared.service.call<{ key: string }>('POST', '/v1/api-keys', { body })).body.key;
    };
    const [webhooks, operational] = [await keyOf('webhooks'), await keyOf('operations')];
    const open = [];
    for (const [method, path] of await operations()) {
      const key = path.startsWith('/v1/webhook') ? operational : webhooks;
      if ((await statusOf(method, path, key)) !== 403) open.push(`${method} ${path}`);
    }
    const toAnyKey = ['DELETE', 'GET', 'POST'].map((method) => `${method} /v1/browser-session`);
    const others = ['GET /health/live', 'GET /health/ready', 'GET /v1/capabilities'];
    expect(open.sort()).toEqual([...toAnyKey, ...others].sort());
  });
});
