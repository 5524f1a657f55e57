import { getEventListeners, once } from 'node:events';
import { type AddressInfo, createConnection } from 'node:net';
import { Readable } from 'node:stream';
import { gzipSync } from 'node:zlib';
import {
  Body,
  Controller,
  Delete,
  Get,
  Headers,
  HttpCode,
  Module,
  NotFoundException,
  Param,
  Post,
  Query,
  Req,
} from '@nestjs/common';
import type { NestFastifyApplication } from '@nestjs/platform-fastify';
import { Test } from '@nestjs/testing';
import { IsEmail, IsString, ValidateBy } from 'class-validator';
import fc from 'fast-check';
import type { FastifyRequest } from 'fastify';
import { type DestinationStream, pino } from 'pino';
import { until } from '../harness/until.js';
import { recordOf, SYSTEM } from '../src/access/audit/audit-record.js';
import { Env } from '../src/config/env.js';
import { Stopping } from '../src/config/stopping.js';
import { Problem } from '../src/http/problem/problem.js';
import { PageQuery } from '../src/http/request/page.js';
import { RawContent, RouteOptions } from '../src/http/request/route-options.js';
import { ClientDisconnect, PreferWait, pollUntil } from '../src/http/request/waiting.js';
import { RequestGate } from '../src/http/server/edge-hooks.js';
import { HttpModule } from '../src/http/server/metrics.js';
import { PinoLogger, pinoOptions } from '../src/pino-logger.js';
import { httpAdapter, setupApp } from '../src/setup.js';

class Gate extends RequestGate {
  admit({ headers }: FastifyRequest): void {
    if (headers.authorization === 'refused') throw new Problem(403, 'forbidden-scope', 'Not with this key.');
  }
}

/** How many signals Node follows for one that `AbortSignal.any` was given. */
function dependantsOf(signal: AbortSignal): number {
  const member = Object.getOwnPropertySymbols(signal).find(({ description }) => description === 'kDependantSignals');
  return member ? ((signal as unknown as Record<symbol, Set<unknown> | undefined>)[member]?.size ?? 0) : 0;
}

/** Values that a validator was asked about. */
let validated = 0;

class PersonBody {
  @IsEmail()
  @ValidateBy({ name: 'counted', validator: { validate: () => ++validated > 0 } })
  email!: string;

  @IsString()
  firstName!: string;
}

let waitBegan: () => void = () => {};
let waitEnded: () => void = () => {};

@Controller('edge')
class EdgeController {
  @Post('json')
  json(@Body() body: PersonBody) {
    return { email: body.email };
  }

  @Post('large')
  @RouteOptions({ bodyLimit: 2 * 1024 ** 2 })
  large(@Body() body: PersonBody) {
    return { email: body.email };
  }

  @Post('empty')
  @HttpCode(202)
  empty() {
    return { empty: true };
  }

  @Delete('empty/:id')
  remove(@Param('id') id: string) {
    return { id };
  }

  @Post('hot')
  @RouteOptions({ hot: true })
  hot() {
    return {};
  }

  @Post('stream')
  @RouteOptions({ body: 'stream' })
  async stream(@Req() request: FastifyRequest, @RawContent() body: Readable, @Headers('content-type') type?: string) {
    if (request.isMultipart()) {
      const names: string[] = [];
      for await (const part of request.parts()) {
        if (part.type === 'file') part.file.resume();
        names.push(part.fieldname);
      }
      return { names };
    }
    let length = 0;
    for await (const chunk of body) length += (chunk as Buffer).length;
    return { length, type: type ?? null };
  }

  @Post('unread')
  @RouteOptions({ body: 'stream' })
  unread() {
    throw new Problem(403, 'forbidden-scope', 'Not with this key.');
  }

  @Post('form')
  @RouteOptions({ body: 'multipart' })
  form(@Req() request: FastifyRequest) {
    return { multipart: request.isMultipart() };
  }

  @Get('wait')
  wait(@PreferWait() wait: number, @ClientDisconnect() gone: AbortSignal) {
    waitBegan();
    gone.addEventListener('abort', () => waitEnded());
    return pollUntil(
      wait,
      async () => ({ wait, gone: gone.aborted }),
      () => wait < 60,
      gone,
    );
  }

  @Get('page')
  page(@Query() query: PageQuery) {
    return query;
  }

  @Get('source')
  source(@Req() request: FastifyRequest) {
    return { source: recordOf(SYSTEM, request).source, scheme: request.protocol, host: request.host };
  }

  @Get('fault/:kind')
  fault(@Param('kind') kind: string) {
    if (kind === 'missing') throw new NotFoundException('Jane Roe');
    if (kind === 'database') throw Object.assign(new Error('connect'), { code: 'ECONNREFUSED' });
    throw Object.assign(new Error('Jane Roe <jane@roe.example>'), { row: 'Jane Roe' });
  }
}

const EDGE_ENV = {
  MAX_CONNECTIONS: 1_000,
  TRUSTED_PROXIES: [] as string[],
  HEADERS_TIMEOUT_SECONDS: 3_600,
  SILENCE_TIMEOUT_SECONDS: 3_600,
  API_DOCS: true,
  BODY_TIMEOUT_SECONDS: 3_600,
  ARRIVING_BODIES_LIMIT: 64 * 1024 ** 2,
  PUBLIC_URL: 'https://notes.example',
  hasRole: () => true,
};

@Module({
  imports: [HttpModule],
  controllers: [EdgeController],
  providers: [
    {
      provide: RequestGate,
      useClass: Gate,
    },
    { provide: Env, useValue: EDGE_ENV },
    Stopping,
  ],
  exports: [Env, RequestGate],
})
class EdgeModule {}

describe('the HTTP edge', () => {
  const lines: string[] = [];
  let app: NestFastifyApplication;
  let base: string;

  async function start(): Promise<NestFastifyApplication> {
    const sink: DestinationStream = { write: (line: string) => lines.push(line) };
    const logger = pino(pinoOptions('info'), sink);
    const module = await Test.createTestingModule({ imports: [EdgeModule] }).compile();
    const made = module.createNestApplication<NestFastifyApplication>(httpAdapter(EDGE_ENV), {
      logger: new PinoLogger(logger),
    });
    await setupApp(made);
    await made.listen(0, '127.0.0.1');
    return made;
  }

  beforeAll(async () => {
    app = await start();
    base = (await app.getUrl()).replace('[::1]', '127.0.0.1');
  });

  afterAll(() => app.close());

  const call = async (path: string, init: RequestInit & { duplex?: 'half' } = {}) => {
    const response = await fetch(base + path, init);
    const text = await response.text();
    return { status: response.status, headers: response.headers, text, json: text ? JSON.parse(text) : undefined };
  };
  const post = (path: string, body: RequestInit['body'], headers: Record<string, string> = {}) =>
    call(path, { method: 'POST', body, headers });
  const json = (path: string, body: unknown) =>
    post(path, JSON.stringify(body), { 'content-type': 'application/json' });

  describe('errors', () => {
    test('every error is RFC 9457 problem details', async () => {
      const answer = await json('/edge/json', { email: 'no', firstName: 'Jane', 'last/name': 'Roe' });
      expect(answer.status).toBe(400);
      expect(answer.headers.get('content-type')).toBe('application/problem+json; charset=utf-8');
      expect(answer.json).toEqual({
        type: 'urn:notebridge:problem:validation',
        title: 'Validation',
        status: 400,
        detail: 'The field /last~1name is not acceptable: is not a field of this request.',
        pointer: '/last~1name',
        errors: [
          { pointer: '/last~1name', detail: 'is not a field of this request' },
          { pointer: '/email', detail: 'email must be an email' },
        ],
      });
    });

    test.each([
      ['/edge/nowhere?email=jane@roe.example', 404, 'not-found'],
      ['/edge/fault/missing', 404, 'not-found'],
      ['/edge/%zz', 400, 'bad-url'],
      [`/edge/fault/${'x'.repeat(2_000)}`, 414, 'url-too-long'],
      ['/edge/page?limit=0', 400, 'validation'],
      ['/edge/page?limit=201', 400, 'validation'],
      ['/edge/page?offset=1', 400, 'validation'],
    ])('GET %.40s is a problem', async (path, status, type) => {
      const answer = await call(path);
      expect([answer.status, answer.json.type]).toEqual([status, `urn:notebridge:problem:${type}`]);
      expect(answer.text).not.toMatch(/jane/i);
    });

    test.each([
      ['DELETE', '/edge/json', 'POST'],
      ['POST', '/edge/empty/4711?name=roe', 'DELETE'],
      ['PUT', '/edge/fault/x', 'GET, HEAD'],
    ])('%s %s is 405 with what the path takes', async (method, path, allow) => {
      const answer = await call(path, { method });
      expect([answer.status, answer.json.type]).toEqual([405, 'urn:notebridge:problem:method-not-allowed']);
      expect(answer.headers.get('allow')).toBe(allow);
    });

    test('an unexpected error shows a reference and nothing else, and the log has it without any message', async () => {
      const answer = await call('/edge/fault/any');
      expect(answer.status).toBe(500);
      expect(answer.json.reference).toMatch(/^[0-9a-f-]{36}$/);
      expect(answer.text).not.toMatch(/jane|at /i);
      const logged = lines.find((line) => line.includes(answer.json.reference));
      expect(logged).toContain('/edge/fault/:kind');
      expect(lines.join()).not.toMatch(/jane/i);
    });

    test('a database that is away is 503 with Retry-After', async () => {
      const answer = await call('/edge/fault/database');
      expect([answer.status, answer.headers.get('retry-after')]).toEqual([503, '5']);
    });

    test.each([
      ['{"email": Jane}', 400, 'bad-json'],
      ['{"__proto__": {"x": 1}}', 400, 'bad-json'],
      [`"${'x'.repeat(64 * 1024)}"`, 413, 'body-too-large'],
      ['[]', 400, 'validation'],
      ['null', 400, 'validation'],
    ])('a JSON body that can not be used is refused, case %#', async (body, status, type) => {
      const answer = await post('/edge/json', body, { 'content-type': 'application/json' });
      expect([answer.status, answer.json.type]).toEqual([status, `urn:notebridge:problem:${type}`]);
    });
  });

  describe('what is judged before it is read or validated', () => {
    const members = (count: number, prefix: string) =>
      Object.fromEntries(Array.from({ length: count }, (_, at) => [`${prefix}${at}`, at]));

    test.each([
      ['40,000 unknown fields', { email: 'a@b.example', ...members(40_000, 'field') }, ''],
      ['60,000 items', { email: Array(60_000).fill('p-1') }, '/email'],
    ])('%s are counted, not validated', async (_, body, pointer) => {
      const before = validated;
      const answer = await json('/edge/large', body);
      expect([answer.status, answer.json.type, answer.json.pointer]).toEqual([
        400,
        'urn:notebridge:problem:validation',
        pointer,
      ]);
      expect(validated).toBe(before);
    });

    test('a query of many parameters is counted too', async () => {
      const answer = await call(`/edge/page?${new URLSearchParams(members(1_000, 'p') as never)}`);
      expect([answer.status, answer.json.pointer]).toEqual([400, '']);
    });

    test('a body may have 64 KiB unless its route says otherwise', async () => {
      const long = { email: 'a@b.example', firstName: 'x'.repeat(70_000) };
      expect((await json('/edge/json', long)).json.type).toContain('body-too-large');
      expect((await json('/edge/large', long)).status).toBe(201);
    });

    test.each(['/edge/json', '/edge/stream', '/edge/form'])(
      'who may not call POST %s is refused before the body is there',
      async (path) => {
        const { port } = app.getHttpServer().address() as AddressInfo;
        const socket = createConnection(port, '127.0.0.1');
        socket.write(
          `POST ${path} HTTP/1.1\r\nHost: x\r\nAuthorization: refused\r\nContent-Type: application/json\r\nContent-Length: 1000\r\n\r\n{`,
        );
        const [answer] = (await once(socket, 'data')) as [Buffer];
        expect(answer.toString()).toMatch(/^HTTP\/1.1 403 /);
        socket.destroy();
      },
    );

    test('a body that stalls is answered 408, and its connection closed', async () => {
      const { BODY_TIMEOUT_SECONDS: usual } = EDGE_ENV;
      EDGE_ENV.BODY_TIMEOUT_SECONDS = 0.1;
      const { port } = app.getHttpServer().address() as AddressInfo;
      const socket = createConnection(port, '127.0.0.1');
      socket.write(
        'POST /edge/json HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nContent-Length: 9\r\n\r\n{',
      );
      let answer = '';
      for await (const chunk of socket) answer += chunk;
      EDGE_ENV.BODY_TIMEOUT_SECONDS = usual;
      expect(answer).toMatch(/^HTTP\/1.1 408 /);
      expect(answer).toContain('"urn:notebridge:problem:request-timeout"');
    });

    test('who was refused with a short body may go on with the same connection', async () => {
      const { port } = app.getHttpServer().address() as AddressInfo;
      const socket = createConnection(port, '127.0.0.1');
      const head = 'POST /edge/json HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nContent-Length: 2\r\n';
      for (const [more, status] of [
        ['Authorization: refused\r\n', 403],
        ['', 400],
      ]) {
        socket.write(`${head}${more}\r\n`);
        if (more === '') socket.write('{}');
        const [answer] = (await once(socket, 'data')) as [Buffer];
        expect(answer.toString()).toMatch(new RegExp(`^HTTP/1.1 ${status} `));
        if (more !== '') socket.write('{}');
      }
      socket.destroy();
    });
  });

  describe('bodies', () => {
    const gzipped = gzipSync('{"email":"a@b.example","firstName":"A"}');

    test.each([
      ['text/plain', 'x'],
      ['application/x-www-form-urlencoded', 'email=a@b.example'],
      ['application/xml', '<x/>'],
      ['garbage', '{}'],
      ['application/vnd.notebridge.stream', '{}'],
      ['multipart/form-data; boundary=x', '--x--'],
    ])('a usual route refuses %s', async (type, body) => {
      const answer = await post('/edge/json', body, { 'content-type': type });
      expect([answer.status, answer.json.type]).toEqual([415, 'urn:notebridge:problem:unsupported-media-type']);
    });

    test('a usual route refuses a body without a type and a compressed one', async () => {
      expect((await post('/edge/json', Buffer.from('{}'))).status).toBe(415);
      const headers = { 'content-type': 'application/json', 'content-encoding': 'gzip' };
      expect((await post('/edge/json', gzipped, headers)).json.type).toContain('unsupported-encoding');
    });

    test('a call without a body may carry any Content-Type', async () => {
      const headers = { 'content-type': 'application/json' };
      expect((await post('/edge/empty', null, headers)).status).toBe(202);
      expect((await call('/edge/empty/7', { method: 'DELETE', headers })).json).toEqual({ id: '7' });
    });

    test.each(['application/json', 'application/octet-stream', 'garbage', undefined])(
      'a route for streams reads the body itself: %s',
      async (type) => {
        const answer = await post('/edge/stream', Buffer.alloc(5_000_000), type ? { 'content-type': type } : {});
        expect(answer.json).toEqual({ length: 5_000_000, type: type ?? null });
      },
    );

    test('a route for streams takes multipart by its parts', async () => {
      const form = new FormData();
      form.append('note', 'x');
      form.append('file', new Blob(['y']), 'y.csv');
      expect((await post('/edge/stream', form)).json).toEqual({ names: ['note', 'file'] });
      const broken = await post('/edge/stream', '--x\r\nContent-', {
        'content-type': 'multipart/form-data; boundary=x',
      });
      expect([broken.status, broken.json.type]).toEqual([400, 'urn:notebridge:problem:bad-multipart']);
    });

    test('a route for forms takes multipart and JSON', async () => {
      expect((await post('/edge/form', new FormData())).json).toEqual({ multipart: true });
      expect((await json('/edge/form', {})).json).toEqual({ multipart: false });
      expect((await post('/edge/form', 'x', { 'content-type': 'text/plain' })).status).toBe(415);
    });

    test.each([
      ['nonsense', 400, 'bad-request'],
      [`GET / HTTP/1.1\r\nHost: x\r\nX: ${'x'.repeat(20_000)}`, 431, 'headers-too-large'],
    ])('what is no HTTP is answered with a problem too (%#)', async (text, status, type) => {
      const { port } = app.getHttpServer().address() as AddressInfo;
      const socket = createConnection(port, '127.0.0.1');
      socket.write(`${text}\r\n\r\n`);
      let answer = '';
      for await (const chunk of socket) answer += chunk;
      expect(answer).toContain(`HTTP/1.1 ${status} `);
      expect(answer).toContain(`"urn:notebridge:problem:${type}"`);
    });

    test('no body and no header makes a usual route fail with a 5xx', async () => {
      const types = ['application/json', 'application/json; charset=utf-16', 'multipart/form-data', ' ', ';', 'a/b;c'];
      const deep = fc.nat(5_000).map((depth) => '['.repeat(depth) + ']'.repeat(depth));
      const bodies = fc.oneof(fc.uint8Array().map(Buffer.from), fc.json(), fc.string(), deep);
      const headers = fc.dictionary(
        fc.constantFrom('prefer', 'content-encoding', 'accept', 'authorization', 'idempotency-key'),
        fc.stringMatching(/^[\x20-\x7e]{0,40}$/),
      );
      const fastify = app.getHttpAdapter().getInstance();
      await fc.assert(
        fc.asyncProperty(fc.constantFrom(...types), bodies, headers, async (type, payload, more) => {
          const request = {
            method: 'POST' as const,
            url: '/edge/json',
            payload,
            headers: { ...more, 'content-type': type },
          };
          const { statusCode } = await fastify.inject(request);
          expect(statusCode).toBeGreaterThanOrEqual(400);
          expect(statusCode).toBeLessThan(500);
        }),
        { seed: Number(process.env.SEED), numRuns: 500 },
      );
    });

    test('a refused stream is not read to its end: the connection is closed', async () => {
      const { port } = app.getHttpServer().address() as AddressInfo;
      const socket = createConnection(port, '127.0.0.1');
      socket.write('POST /edge/unread HTTP/1.1\r\nHost: x\r\nContent-Length: 4000000000\r\n\r\nbegin');
      let answer = '';
      for await (const chunk of socket) answer += chunk;
      expect(answer).toMatch(/^HTTP\/1.1 403 /);
      expect(answer.toLowerCase()).toContain('connection: close');
    });
  });

  describe('waiting and paging', () => {
    test('Prefer: wait is applied, bounded and answered', async () => {
      const answer = await call('/edge/wait', { headers: { prefer: 'respond-async, wait=5' } });
      expect([answer.json.wait, answer.headers.get('preference-applied')]).toEqual([5, 'wait=5']);
      const none = await call('/edge/wait', { headers: { prefer: 'wait=soon' } });
      expect([none.json.wait, none.headers.get('preference-applied')]).toEqual([0, null]);
    });

    test('nobody waits for a caller who hung up', async () => {
      const began = new Promise<void>((resolve) => {
        waitBegan = resolve;
      });
      const ended = new Promise<void>((resolve) => {
        waitEnded = resolve;
      });
      const caller = new AbortController();
      const calling = fetch(`${base}/edge/wait`, { headers: { prefer: 'wait=60' }, signal: caller.signal });
      await began;
      caller.abort();
      await expect(calling).rejects.toThrow();
      await ended;
    });

    test('whoever waits is answered when the service stops', async () => {
      const began = new Promise<void>((resolve) => {
        waitBegan = resolve;
      });
      const other = await start();
      const waiting = fetch(`${await other.getUrl()}/edge/wait`, { headers: { prefer: 'wait=60' } });
      await began;
      await other.close();
      // Connections that are not answered are cut.
      expect((await waiting).status).toBe(200);
    });

    test('a request that might have waited leaves nothing behind on the signal of the whole service', async () => {
      const { closing } = app.getHttpAdapter().getInstance();
      for (let requests = 0; requests < 50; requests++) await call('/edge/wait');
      await until('all answers are closed', () => getEventListeners(closing, 'abort').length === 0);
      expect(dependantsOf(closing)).toBe(0);
    });

    test('a page is 50 items unless asked otherwise', async () => {
      expect((await call('/edge/page')).json).toEqual({ limit: 50 });
      expect((await call('/edge/page?limit=200&cursor=abc')).json).toEqual({ limit: 200, cursor: 'abc' });
    });
  });

  test('the access log holds route patterns and no URL, query or body', async () => {
    lines.length = 0;
    await call('/edge/empty/mrn-4711?name=roe', { method: 'DELETE' });
    await json('/edge/json', { email: 'jane@roe.example', firstName: 'Jane' });
    await call('/nowhere/mrn-4711');
    await post('/edge/hot', null);
    const logged = () => lines.map((line) => JSON.parse(line)).filter((line) => line.msg === 'request');
    await until('all are logged', () => logged().length >= 3); // after the answer
    expect(logged()).toMatchObject([
      { method: 'DELETE', route: '/edge/empty/:id', status: 200, ms: expect.any(Number) },
      { method: 'POST', route: '/edge/json', status: 201 },
      { method: 'GET', route: 'unmatched', status: 404 },
    ]);
    expect(lines.join()).not.toMatch(/mrn-4711|roe|jane/i);
  });

  test('what anybody writes about where he is counts only from a trusted proxy', async () => {
    const forged = {
      'x-forwarded-for': '203.0.113.7',
      'x-forwarded-proto': 'https',
      'x-forwarded-host': 'evil.example',
      forwarded: 'for=203.0.113.7',
      'x-real-ip': '203.0.113.7',
    };
    const observed = { source: '127.0.0.1', scheme: 'http', host: new URL(base).host };
    expect((await call('/edge/source', { headers: forged })).json).toEqual(observed);

    const { TRUSTED_PROXIES: none } = EDGE_ENV;
    EDGE_ENV.TRUSTED_PROXIES = ['127.0.0.0/8', '198.51.100.4'];
    const behind = await start();
    EDGE_ENV.TRUSTED_PROXIES = none;
    const seen = async (forwardedFor: string) => {
      const address = `${(await behind.getUrl()).replace('[::1]', '127.0.0.1')}/edge/source`;
      const answer = await fetch(address, { headers: { 'x-forwarded-for': forwardedFor } });
      return ((await answer.json()) as typeof observed).source;
    };
    expect(await seen('203.0.113.7')).toBe('203.0.113.7');
    // What the client wrote stands to the left of what the proxies added.
    expect(await seen('192.0.2.1, 203.0.113.7, 198.51.100.4')).toBe('203.0.113.7');
    expect(await seen("203.0.113.7'; DROP TABLE people")).toBe('127.0.0.1');
    expect(await seen('203.0.113.7:50000')).toBe('127.0.0.1');
    await behind.close();
  });

  test('every answer carries the headers that browsers heed, and no cache keeps one', async () => {
    const raw = async (request: string) => {
      const { port } = app.getHttpServer().address() as AddressInfo;
      const socket = createConnection(port, '127.0.0.1');
      socket.write(request);
      let answer = '';
      for await (const chunk of socket) answer += chunk;
      const lines = answer.split('\r\n\r\n', 1)[0]?.split('\r\n').slice(1) ?? [];
      return new Map(lines.map((line) => line.split(': ') as [string, string]));
    };
    const answers: Record<string, { get(name: string): string | null | undefined }> = {
      usual: (await call('/edge/page')).headers,
      hot: (await post('/edge/hot', null)).headers,
      'no such route': (await call('/edge/no-such-route')).headers,
      'wrong method': (await call('/edge/json', { method: 'DELETE' })).headers,
      'bad address': (await call('/edge/%zz')).headers,
      'refused by the gate': (await call('/edge/page', { headers: { authorization: 'refused' } })).headers,
      unexpected: (await call('/edge/fault/any')).headers,
      documentation: (await fetch(`${base}/docs`)).headers,
      'its style': (await fetch(`${base}/docs/swagger-ui.css`)).headers,
      'no HTTP': await raw('nonsense\r\n\r\n'),
      'headers too large': await raw(`GET / HTTP/1.1\r\nx: ${'x'.repeat(20_000)}\r\n\r\n`),
    };
    const shown = Object.entries(answers).map(([name, headers]) => [
      name,
      headers.get('cache-control'),
      headers.get('x-content-type-options'),
      headers.get('content-security-policy')?.includes("default-src 'self'"),
    ]);
    expect(shown).toEqual(Object.keys(answers).map((name) => [name, 'no-store', 'nosniff', true]));
  });

  describe('connections', () => {
    const apps: NestFastifyApplication[] = [];
    const startWith = async (more: Partial<typeof EDGE_ENV>) => {
      const usual = { ...EDGE_ENV };
      Object.assign(EDGE_ENV, more);
      const made = await start();
      Object.assign(EDGE_ENV, usual);
      apps.push(made);
      return made;
    };
    afterAll(() => Promise.all(apps.map((made) => made.close())));

    /** What a connection is told, on which this is sent and nothing more. */
    const told = async (by: NestFastifyApplication, sent: string) => {
      const { port } = by.getHttpServer().address() as AddressInfo;
      // One that is closed before all that was sent is read ends with a reset.
      const socket = createConnection(port, '127.0.0.1').on('error', () => undefined);
      let answer = '';
      socket.on('data', (chunk) => {
        answer += chunk;
      });
      socket.write(sent);
      await new Promise((resolve) => socket.once('close', resolve));
      return answer;
    };

    test('one that says nothing, or stops within its headers, is answered 408 and closed', async () => {
      const hasty = await startWith({ HEADERS_TIMEOUT_SECONDS: 0.2 });
      for (const sent of ['', 'GET /edge/page HTTP/1.1\r\nHost: x\r\n'])
        expect(await told(hasty, sent)).toMatch(/^HTTP\/1.1 408 [\s\S]*"urn:notebridge:problem:request-timeout"/);
    });

    test('one that stops in the middle of a file is closed, and one whose answer takes its time is not', async () => {
      const impatient = await startWith({ SILENCE_TIMEOUT_SECONDS: 0.2 });
      const file = 'POST /edge/stream HTTP/1.1\r\nHost: x\r\nContent-Length: 9\r\n\r\n1234';
      expect(await told(impatient, file)).toBe('');
      const slow = 'GET /edge/wait HTTP/1.1\r\nHost: x\r\nPrefer: wait=1\r\nConnection: close\r\n\r\n';
      // One whose request a machine that stood still kept in the socket has been silent, and comes again.
      await until('it is answered', async () => /^HTTP\/1.1 200 /.test(await told(impatient, slow)));
    });

    test('the API is not described where that is switched off', async () => {
      const silent = await startWith({ API_DOCS: false });
      const url = (await silent.getUrl()).replace('[::1]', '127.0.0.1');
      for (const path of ['/docs', '/openapi.json', '/docs/swagger-ui.css'])
        expect((await fetch(url + path)).status).toBe(404);
    });
  });

  test('the API describes itself, readable with assets of its own', async () => {
    const document = (await call('/openapi.json')).json;
    expect(document.paths['/edge/json'].post).toBeDefined();
    expect(document.servers).toEqual([{ url: 'https://notes.example' }]);
    const page = await (await fetch(`${base}/docs`)).text();
    const assets = [...page.matchAll(/(?:src|href)="([^"]+)"/g)].map((match) => match[1] as string);
    expect(assets.length).toBeGreaterThan(3);
    for (const asset of assets) {
      const url = new URL(asset, `${base}/docs`);
      expect(url.origin).toBe(base);
      expect((await fetch(url)).status).toBe(200);
    }
  });
});
