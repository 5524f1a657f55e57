import { getEventListeners, once } from 'node:events';
import type { IncomingMessage, Server } from 'node:http';
import type { Socket } from 'node:net';
import { gzipSync } from 'node:zlib';
import { Logger } from '@nestjs/common';
import { LongPoll } from '../../src/feed/long-poll.js';
import { ImportsService } from '../../src/imports/api/imports.service.js';
import { nextCall } from '../world/next-call.js';
import { useWorld } from '../world/use-world.js';
import { connectTo, firstAnswer, headOf, wholeAnswer } from './connection.js';

const ADMIN = { authorization: 'Bearer admin-key-of-the-notebridge-tests' };
const JSON_TYPE = { 'content-type': 'application/json' };
const PROVIDER = '/v1/providers/p-1';

const world = useWorld();

async function send(path: string, init: RequestInit = {}, url = world.url) {
  const response = await fetch(url + path, { ...init, headers: { ...ADMIN, ...init.headers } });
  const text = await response.text();
  const isJson = /json/.test(response.headers.get('content-type') ?? '');
  const json = isJson ? JSON.parse(text) : {};
  const type = json.type?.replace('urn:notebridge:problem:', '');
  return { status: response.status, headers: response.headers, text, json, type };
}
const put = (path: string, body: RequestInit['body'], headers: Record<string, string> = JSON_TYPE) =>
  send(path, { method: 'PUT', body, headers });
const post = (path: string, body: RequestInit['body'], headers: Record<string, string> = JSON_TYPE) =>
  send(path, { method: 'POST', body, headers });

describe('errors', () => {
  test('are RFC 9457 problem details', async () => {
    const body = { email: 'no', firstName: 'Jane', lastName: 'Roe', 'last/name': 'Roe' };
    const answer = await put(PROVIDER, JSON.stringify(body));
    expect([answer.status, answer.headers.get('content-type')]).toEqual([
      400,
      'application/problem+json; charset=utf-8',
    ]);
    expect(answer.json).toEqual({
      type: 'urn:notebridge:problem:validation',
      title: 'Validation',
      status: 400,
      detail: 'The field /last~1name is invalid: is not a field of this request.',
      pointer: '/last~1name',
      errors: [
        { pointer: '/last~1name', detail: 'is not a field of this request' },
        { pointer: '/email', detail: 'must be an email address such as name@example.org' },
      ],
    });
  });

  test.each([
    ['/nowhere?email=jane@roe.example', 404, 'not-found'],
    ['/v1/providers/jane', 404, 'provider-not-found'],
    ['/v1/providers/%zz', 400, 'bad-url'],
    [`/v1/providers/${'x'.repeat(2_000)}`, 414, 'url-too-long'],
    ['/v1/providers?limit=0', 400, 'validation'],
    ['/v1/providers?limit=201', 400, 'validation'],
    ['/v1/providers?offset=1', 400, 'validation'],
  ])('answer GET %.40s without repeating it', async (path, status, type) => {
    const answer = await send(path);
    expect([answer.status, answer.type]).toEqual([status, type]);
    expect(answer.text).not.toMatch(/jane/i);
  });

  test('answer 404 for a method that a path does not take', async () => {
    for (const [method, path] of [
      ['DELETE', '/v1/providers'],
      ['GET', '/webhooks/platform'],
    ] as const) {
      const answer = await send(path, { method });
      expect([answer.status, answer.type]).toEqual([404, 'not-found']);
    }
  });

  test('show only a reference when unexpected, and the log has it without the message', async () => {
    const logged = jest.spyOn(Logger.prototype, 'error');
    const unexpected = Object.assign(new Error('Jane Roe <jane@roe.example>'), { row: 'Jane Roe' });
    jest.spyOn(world.get(ImportsService), 'list').mockRejectedValue(unexpected);
    const answer = await send('/v1/imports');
    expect([answer.status, answer.json.reference]).toEqual([500, expect.stringMatching(/^[0-9a-f-]{36}$/)]);
    expect(answer.text).not.toMatch(/jane|at /i);
    expect(logged).toHaveBeenCalledWith(
      expect.objectContaining({ reference: answer.json.reference, route: 'GET /v1/imports' }),
    );
    expect(JSON.stringify(logged.mock.calls)).not.toMatch(/jane/i);
  });

  test.each([
    ['nonsense', 400, 'bad-request'],
    [`GET / HTTP/1.1\r\nHost: x\r\nX: ${'x'.repeat(20_000)}`, 431, 'headers-too-large'],
    ['POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 5\r\nContent-Length: 6', 400, 'bad-request'],
    ['POST / HTTP/1.1\r\nHost: x\r\nContent-Length: -1', 400, 'bad-request'],
    ['\x16\x03\x01', 400, 'bad-request'],
  ])('answer malformed HTTP with a problem, too (%#)', async (text, status, type) => {
    const answer = await wholeAnswer(connectTo(world, `${text}\r\n\r\n`));
    expect(answer).toContain(`HTTP/1.1 ${status} `);
    expect(answer).toContain(`"urn:notebridge:problem:${type}"`);
  });
});

describe('bodies', () => {
  const person = { email: 'a@b.example', firstName: 'A', lastName: 'B' };
  const members = (count: number) => Object.fromEntries(Array.from({ length: count }, (_, at) => [`m${at}`, at]));

  test.each([
    ['{"email": Jane}', 400, 'bad-json'],
    ['{"__proto__": {"x": 1}}', 400, 'bad-json'],
    [`"${'x'.repeat(64 * 1024)}"`, 413, 'body-too-large'],
    ['[]', 400, 'validation'],
    ['null', 400, 'validation'],
    [Buffer.from('{"email":"a@b.example","firstName":"Ren\xe9","lastName":"B"}', 'latin1'), 400, 'bad-json'],
    ['['.repeat(20_000), 400, 'too-deep'],
    [`{"providers":${'['.repeat(101)}`, 400, 'too-deep'],
  ])('are rejected if their JSON is unusable (%#)', async (body, status, type) => {
    const answer = await put(PROVIDER, body);
    expect([answer.status, answer.type]).toEqual([status, type]);
  });

  const TOO_MANY = /^must hold no more than/;

  test.each([
    ['4,000 unknown fields', members(4_000), ''],
    ['6,000 items', { providers: Array(6_000).fill('p-1') }, '/providers'],
  ])('with %s are counted, not validated', async (_, body, pointer) => {
    const answer = await put('/v1/clients/c-1', JSON.stringify(body));
    expect([answer.status, answer.json.errors]).toEqual([400, [{ pointer, detail: expect.stringMatching(TOO_MANY) }]]);
  });

  test('in a query of many parameters are counted, too', async () => {
    const answer = await send(`/v1/providers?${new URLSearchParams(members(1_000) as never)}`);
    expect(answer.json.errors).toEqual([{ pointer: '', detail: expect.stringMatching(TOO_MANY) }]);
  });

  test('nested 200,000 deep are rejected on a route for large bodies', async () => {
    const answer = await post('/v1/sessions', '['.repeat(200_000), JSON_TYPE);
    expect([answer.status, answer.type]).toEqual([400, 'too-deep']);
  });

  test.each(['UTF-8', '"utf-8"', 'utf8'])('may name the charset %s', async (charset) => {
    const body = JSON.stringify({ ...person, firstName: 'René' });
    const answer = await put(PROVIDER, body, { 'content-type': `application/json; charset=${charset}` });
    expect(answer.status).toBeLessThan(300);
  });

  test('are accepted only on some routes if they exceed 64 KiB', async () => {
    const long = JSON.stringify({ ...person, firstName: 'x'.repeat(70_000), providers: ['p-1'] });
    expect((await put(PROVIDER, long)).type).toBe('body-too-large');
    expect((await put('/v1/clients/c-1', long)).type).not.toBe('body-too-large');
  });

  test.each([
    ['text/plain', 'x'],
    ['application/x-www-form-urlencoded', 'email=a@b.example'],
    ['application/xml', '<x/>'],
    ['garbage', '{}'],
    ['application/json; charset=iso-8859-1', '{}'],
    ['application/vnd.notebridge.stream', '{}'],
    ['multipart/form-data; boundary=x', '--x--'],
  ])('are rejected by most routes if their type is %s', async (type, body) => {
    const answer = await put(PROVIDER, body, { 'content-type': type });
    expect([answer.status, answer.type]).toEqual([415, 'unsupported-media-type']);
  });

  test('without a type or compressed are rejected by most routes', async () => {
    expect((await put(PROVIDER, Buffer.from('{}'), {})).status).toBe(415);
    const headers = { ...JSON_TYPE, 'content-encoding': 'gzip' };
    expect((await put(PROVIDER, gzipSync(JSON.stringify(person)), headers)).type).toBe('unsupported-encoding');
  });

  test('may have any Content-Type if they are empty', async () => {
    for (const type of ['application/json', 'garbage']) {
      const answer = await send(PROVIDER, { method: 'DELETE', headers: { 'content-type': type } });
      expect(answer.type).toBe('provider-not-found');
    }
  });

  test.each(['application/json', 'garbage', 'application/octet-stream'])(
    'reach the handler of a route for streams if their type is %s',
    async (type) => {
      const answer = await post('/v1/imports?kind=providers', 'x', { 'content-type': type });
      expect([answer.status, answer.type, answer.json.detail]).toEqual([
        415,
        'unknown-format',
        expect.stringContaining('text/csv'),
      ]);
    },
  );

  test('return 400 if their multipart is broken', async () => {
    const answer = await post('/v1/imports?kind=providers', '--x\r\nContent-', {
      'content-type': 'multipart/form-data; boundary=x',
    });
    expect([answer.status, answer.type]).toEqual([400, 'bad-multipart']);
  });

  test('must be multipart or JSON on a route for forms', async () => {
    const types = { multipart: new FormData(), json: '{}', text: 'x' };
    const jobs = '/v1/compliance/jobs';
    const statuses = [
      (await post(jobs, types.multipart, {})).status,
      (await post(jobs, types.json)).status,
      (await post(jobs, types.text, { 'content-type': 'text/plain' })).status,
    ];
    expect(statuses).toEqual([400, 400, 415]);
  });

  test('return 408 and close the connection if they stall', async () => {
    const asked = once(world.app.getHttpServer(), 'request') as Promise<[IncomingMessage]>;
    const socket = connectTo(world, `${headOf('PUT', PROVIDER, { ...ADMIN, ...JSON_TYPE, 'content-length': 9 })}{`);
    const answer = wholeAnswer(socket);
    const [incoming] = await asked;
    await world.eventually('its body is read', () => incoming.readableDidRead);
    await world.advance('29 s');
    await world.call('GET', '/health/live');
    expect(socket.bytesRead).toBe(0);
    await world.advance('1 s');
    expect(await answer).toMatch(/^HTTP\/1.1 408 [\s\S]*"urn:notebridge:problem:request-timeout"/);
  });

  test('are read after a rejection if they are short, so that the connection can be reused', async () => {
    const head = (headers: object) => headOf('PUT', PROVIDER, { ...JSON_TYPE, 'content-length': 2, ...headers });
    const socket = connectTo(world, head({}));
    expect(await firstAnswer(socket)).toMatch(/^HTTP\/1.1 401 /);
    socket.write(`{}${head(ADMIN)}{}`);
    expect(await firstAnswer(socket)).toMatch(/^HTTP\/1.1 400 /);
    socket.destroy();
  });

  test('are not read after a rejection if they are long: the connection closes', async () => {
    const answer = await wholeAnswer(
      connectTo(world, `${headOf('POST', '/v1/recordings', { 'content-length': 4e9 })}x`),
    );
    expect(answer).toMatch(/^HTTP\/1.1 401 [\s\S]*connection: close/i);
  });
});

describe('a caller that waits', () => {
  const wait = (init: RequestInit = {}) => send('/v1/events', { ...init, headers: { prefer: 'wait=60' } });

  test('is no longer waited for once it hung up', async () => {
    const begun = nextCall(LongPoll.prototype, 'read');
    const caller = new AbortController();
    const waiting = wait({ signal: caller.signal });
    const { returned } = await begun;
    caller.abort();
    await expect(waiting).rejects.toThrow();
    expect(await returned).toMatchObject({ items: [] });
  });

  test('is answered when the service stops', async () => {
    const begun = nextCall(LongPoll.prototype, 'read');
    const waiting = wait();
    await begun;
    await world.restart();
    // Connections without an answer are cut after a grace period.
    expect((await waiting).status).toBe(200);
  });

  test('leaves nothing behind on the signal of the whole service', async () => {
    const { app, url } = await world.startAnother();
    const { closing } = app.getHttpAdapter().getInstance();
    const added = jest.spyOn(closing, 'addEventListener');
    const ask = () => wholeAnswer(connectTo({ url }, headOf('GET', '/v1/events', { ...ADMIN, connection: 'close' })));
    for (let requests = 0; requests < 20; requests += 1) expect(await ask()).toMatch(/^HTTP\/1.1 200 /);
    expect(added).toHaveBeenCalledTimes(20);
    expect(getEventListeners(closing, 'abort')).toEqual([]);
    // `AbortSignal.any` would keep a reference for each request.
    const member = Object.getOwnPropertySymbols(closing).find(({ description }) => description === 'kDependantSignals');
    expect(member && Reflect.get(closing, member).size).toBeFalsy();
  });
});

test('the access log has the requests of known callers by route pattern, and no URL, query or body', async () => {
  const logged = jest.spyOn(Logger.prototype, 'log');
  const body = JSON.stringify({ email: 'jane@roe.example', firstName: 'Jane' });
  // One connection each: an answer is logged before its connection closes.
  const ask = async (method: string, path: string, sent = '') => {
    const headers = { ...ADMIN, ...JSON_TYPE, 'content-length': sent.length, connection: 'close' };
    await wholeAnswer(connectTo(world, headOf(method, path, headers) + sent));
  };
  await ask('DELETE', '/v1/providers/mrn-4711?name=roe');
  await ask('PUT', '/v1/providers/mrn-4711', body);
  await ask('GET', '/nowhere/mrn-4711');
  await ask('POST', '/webhooks/platform', body);
  expect(logged.mock.calls.map(([line]) => line)).toMatchObject([
    { msg: 'request', method: 'DELETE', route: '/v1/providers/:externalId', status: 404, ms: expect.any(Number) },
    { method: 'PUT', route: '/v1/providers/:externalId', status: 400 },
  ]);
  expect(JSON.stringify(logged.mock.calls)).not.toMatch(/mrn-4711|roe|jane/i);
});

test('forwarding headers are honoured only from a trusted proxy', async () => {
  const behind = await world.startAnother({ TRUSTED_PROXIES: '127.0.0.0/8,198.51.100.4' });
  const sources = async (url: string, forwardedFor: string) => {
    const headers = { 'x-forwarded-for': forwardedFor, forwarded: 'for=203.0.113.7', 'x-real-ip': '203.0.113.7' };
    const read = await send('/v1/providers', { headers }, url);
    const { json } = await send(`/v1/audit?action=${encodeURIComponent('GET /v1/providers')}`);
    const isOfIt = ({ requestId }: { requestId: string }) => requestId === read.headers.get('request-id');
    return json.items.find(isOfIt).source;
  };
  expect(await sources(world.url, '203.0.113.7')).toBe('127.0.0.1');
  expect(await sources(behind.url, '203.0.113.7')).toBe('203.0.113.7');
  // Proxies append on the right, so the client wrote the leftmost address.
  expect(await sources(behind.url, '192.0.2.1, 203.0.113.7, 198.51.100.4')).toBe('203.0.113.7');
  for (const invalid of ["203.0.113.7'; DROP TABLE people", '203.0.113.7:50000'])
    expect(await sources(behind.url, invalid)).toBe('127.0.0.1');
});

test('every answer has security headers, and forbids caching, frames and other origins', async () => {
  jest.spyOn(world.get(ImportsService), 'list').mockRejectedValue(new Error('unexpected'));
  const answers: Record<string, Headers> = {
    usual: (await send('/v1/providers')).headers,
    hot: (await send('/health/live')).headers,
    'no such route': (await send('/no-such-route')).headers,
    unauthorized: (await send('/v1/providers', { headers: { authorization: '' } })).headers,
    unexpected: (await send('/v1/imports')).headers,
    documentation: (await send('/docs')).headers,
    'its style': (await send('/docs/swagger-ui.css')).headers,
  };
  const shown = Object.entries(answers).map(([name, headers]) => [
    name,
    headers.get('cache-control'),
    headers.get('x-content-type-options'),
    headers.get('referrer-policy'),
    headers.get('strict-transport-security')?.startsWith('max-age=31536000'),
    ["default-src 'self'", "frame-ancestors 'none'"].every((rule) =>
      headers.get('content-security-policy')?.includes(rule),
    ),
    headers.get('access-control-allow-origin') ?? 'none',
  ]);
  const wanted = ['no-store', 'nosniff', 'no-referrer', true, true, 'none'];
  expect(shown).toEqual(Object.keys(answers).map((name) => [name, ...wanted]));
});

describe('a silent connection', () => {
  /** A process whose HTTP server says when it has a connection, and when that has a request. */
  async function startServer(settings: Record<string, string>) {
    const service = await world.startAnother(settings);
    const server: Server = service.app.getHttpServer();
    const open = async (sent: string) => {
      const accepted = once(server, 'connection') as Promise<[Socket]>;
      const requested = once(server, 'request');
      const socket = connectTo(service, sent);
      const [accepting] = await accepted;
      return { socket, accepting, requested };
    };
    return { server, open };
  }

  test('is answered 408 when its headers are late', async () => {
    const { server, open } = await startServer({ HEADERS_TIMEOUT_SECONDS: '7' });
    expect(server.headersTimeout).toBe(7_000);
    const { socket, accepting } = await open('GET /v1/providers HTTP/1.1\r\nHost: x\r\n');
    const answer = wholeAnswer(socket);
    server.emit('clientError', Object.assign(new Error(), { code: 'ERR_HTTP_REQUEST_TIMEOUT' }), accepting);
    expect(await answer).toMatch(/^HTTP\/1.1 408 [\s\S]*"urn:notebridge:problem:request-timeout"/);
  });

  test('is cut once nothing has moved on it for a while', async () => {
    const { server, open } = await startServer({ SILENCE_TIMEOUT_SECONDS: '7' });
    expect(server.timeout).toBe(7_000);
    const { accepting } = await open(`${headOf('POST', '/v1/imports', { ...ADMIN, 'content-length': 9 })}1234`);
    accepting.emit('timeout');
    await world.eventually('it is closed', () => accepting.destroyed);
  });
});

describe('the description of the API', () => {
  test('is a page whose assets come from the service', async () => {
    const { url } = await world.startAnother({ PUBLIC_URL: 'https://notes.example' });
    const { json } = await send('/openapi.json', {}, url);
    expect(json.servers).toEqual([{ url: 'https://notes.example' }]);
    const { text } = await send('/docs', {}, url);
    const assets = [...text.matchAll(/(?:src|href)="([^"]+)"/g)].map(([, asset = '']) => new URL(asset, `${url}/docs`));
    expect(assets.length).toBeGreaterThan(3);
    for (const asset of assets) {
      expect(asset.origin).toBe(url);
      expect((await send(asset.pathname, {}, url)).status).toBe(200);
    }
  });

  test('is absent where it is switched off', async () => {
    const { url } = await world.startAnother({ API_DOCS: 'false' });
    for (const path of ['/docs', '/openapi.json', '/docs/swagger-ui.css'])
      expect((await send(path, {}, url)).status).toBe(404);
  });
});
