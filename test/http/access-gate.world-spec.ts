import { once } from 'node:events';
import type { IncomingMessage } from 'node:http';
import { useWorld } from '../world/use-world.js';
import { connectTo, headOf } from './connection.js';

const world = useWorld();

/** Every operation of the API, with `x` for each parameter. */
async function operations(): Promise<[method: string, path: string][]> {
  const { body } = await world.call<{ paths: Record<string, object> }>('GET', '/openapi.json');
  return Object.entries(body.paths).flatMap(([path, methods]) =>
    Object.keys(methods).map((method): [string, string] => [method.toUpperCase(), path.replace(/\{\w+\}/g, 'x')]),
  );
}

/** The status of a request whose body never comes; 0 when the service waits for the body. */
async function statusOf(method: string, path: string, key?: string): Promise<number> {
  const headers = {
    'content-type': 'application/json',
    ...(method !== 'GET' && { 'content-length': 1_000 }),
    ...(key !== undefined && { authorization: `Bearer ${key}` }),
  };
  const asked = once(world.app.getHttpServer(), 'request') as Promise<[IncomingMessage]>;
  const socket = connectTo(world, headOf(method, path, headers));
  let answer = '';
  socket.once('data', (chunk: Buffer) => {
    answer = chunk.toString('latin1');
  });
  const [incoming] = await asked;
  await world.eventually(
    'it is answered, or its body is read',
    () => answer !== '' || incoming.listenerCount('data') > 0,
  );
  socket.destroy();
  return Number(answer.slice(9, 12));
}

describe('before the body is read', () => {
  test('every route except health, sign-in, FHIR metadata and the receiver returns 401 without a key', async () => {
    const all = await operations();
    expect(all.length).toBeGreaterThan(40);
    const open = [];
    for (const [method, path] of all) if ((await statusOf(method, path)) !== 401) open.push(`${method} ${path}`);
    const metadata = 'GET /fhir/metadata';
    const receiver = 'POST /webhooks/platform'; // verifies a signature over its body
    expect(open.sort()).toEqual([
      ...[metadata, 'GET /health/live', 'GET /health/ready', 'GET /v1/sign-in/methods', receiver],
    ]);
  });

  test('every route with a scope answers 403 to a key of another scope', async () => {
    const keyOf = async (scope: string) =>
      (await world.call<{ key: string }>('POST', '/v1/api-keys', { body: { name: scope, scopes: [scope] } })).body.key;
    const [webhooks, operational] = [await keyOf('webhooks'), await keyOf('operations')];
    const open = [];
    for (const [method, path] of await operations()) {
      const key = path.startsWith('/v1/webhook') ? operational : webhooks;
      if ((await statusOf(method, path, key)) !== 403) open.push(`${method} ${path}`);
    }
    const toAnyKey = ['DELETE', 'GET', 'POST'].map((method) => `${method} /v1/browser-session`);
    const sessions = ['DELETE /v1/browser-sessions/x', 'GET /v1/browser-sessions', 'POST /v1/browser-session/step-up'];
    const others = [
      'GET /v1/capabilities',
      'GET /v1/sending',
      'GET /v1/sign-in/methods',
      'GET /v1/words',
      'POST /v1/search',
      'POST /webhooks/platform',
    ];
    const health = ['GET /fhir/metadata', 'GET /health/live', 'GET /health/ready'];
    expect(open.sort()).toEqual([...toAnyKey, ...sessions, ...others, ...health].sort());
  });
});
