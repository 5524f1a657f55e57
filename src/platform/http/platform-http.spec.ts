import type { IncomingMessage, ServerResponse } from 'node:http';
import { createServer, type Server } from 'node:net';
import { setImmediate as turnOfLoop } from 'node:timers/promises';
import { inspect } from 'node:util';
import { gzipSync } from 'node:zlib';
import { Metrics } from '../../monitoring/metrics.js';
import { API_KEY, httpTo, json, LoopbackPlatform, stopTimeouts } from '../clients/loopback-platform.spec-support.js';
import type { PlatformError } from '../contract/platform-errors.js';
import type { CallOptions, PlatformHttp } from './platform-http.js';

const body = { email: 'jane.secret@example.com', firstName: 'Jane', lastName: 'Secret' };
const TIMEOUT_MS = 7_000;
const TIMEOUT = { PLATFORM_TIMEOUT_SECONDS: String(TIMEOUT_MS / 1_000) };

type Answer = (request: IncomingMessage, response: ServerResponse) => void;

/** No answer until the time for it is over. */
const silence: Answer = () => jest.advanceTimersByTime(TIMEOUT_MS);

describe('one HTTP attempt', () => {
  let platform: LoopbackPlatform;
  let http: PlatformHttp;

  stopTimeouts();
  beforeEach(async () => {
    platform = await LoopbackPlatform.start();
    http = httpTo(platform.url, undefined, TIMEOUT);
  });
  afterEach(async () => {
    await platform.stop();
  });

  const create = (options: CallOptions = {}, client = http) =>
    client.call({ operation: 'createProvider', body, ...options }, (answer) => answer);
  const failure = (call: Promise<unknown>) =>
    call.then(
      () => {
        throw new Error('The call succeeded.');
      },
      (error: PlatformError) => error,
    );
  const failing = (answer: Answer) => {
    platform.answer = answer;
    return failure(create());
  };

  it('resets the connection of a call that timed out', async () => {
    const ended = new Promise<string | undefined>((resolve) => {
      platform.answer = ({ socket }) => {
        socket
          .once('error', ({ code }: NodeJS.ErrnoException) => resolve(code))
          .once('close', () => resolve(undefined));
        jest.advanceTimersByTime(TIMEOUT_MS);
      };
    });
    expect(await failure(create())).toMatchObject({ kind: 'unknown-outcome' });
    expect(await ended).toBe('ECONNRESET');
  });

  it('sends JSON with the API key, and reads the answer', async () => {
    platform.answer = (_request, response) => json(response, 201, { userId: 'u' });
    const answer = await create();
    expect(answer.body).toEqual({ userId: 'u' });
    expect(platform.heard).toEqual([
      expect.objectContaining({ method: 'POST', url: '/users/providers', body: JSON.stringify(body) }),
    ]);
    expect(platform.heard[0]?.headers).toMatchObject({
      'content-type': 'application/json',
      'content-length': String(JSON.stringify(body).length),
      'x-partner-key': API_KEY,
      'user-agent': 'notebridge',
      connection: 'close',
    });
  });

  it('sends no content type without a body', async () => {
    await http.call({ operation: 'deleteUser', parameters: { userId: 'u/1' } }, () => undefined);
    expect(platform.heard[0]).toMatchObject({ method: 'DELETE', url: '/users/u%2F1', body: '' });
    expect(platform.heard[0]?.headers).not.toHaveProperty('content-type');
  });

  it('uses a new connection for each call', async () => {
    platform.keepConnections();
    platform.answer = (_request, response) => json(response, 200, { isUserExists: false });
    for (let call = 0; call < 3; call += 1) await http.call({ operation: 'checkUser', body }, () => undefined);
    expect(platform.connections).toBe(3);
  });

  it('reads compressed answers', async () => {
    platform.answer = (_request, response) =>
      response.writeHead(200, { 'content-encoding': 'gzip' }).end(gzipSync(JSON.stringify({ userId: 'u' })));
    expect((await create()).body).toEqual({ userId: 'u' });
  });

  describe('an answer other than JSON with 2xx', () => {
    /** For each status the kind, and whether JSON, a page and an empty body show a wrong address. */
    const OUTCOMES: [status: number, PlatformError['kind'], json: boolean, page: boolean][] = [
      [301, 'rejected', true, true],
      [302, 'rejected', true, true],
      [308, 'rejected', true, true],
      [400, 'rejected', false, true],
      [401, 'unauthorized', false, false],
      [403, 'unauthorized', false, false],
      [404, 'not-found', false, true],
      [405, 'rejected', true, true],
      [408, 'unknown-outcome', false, false],
      [409, 'rejected', false, true],
      [422, 'rejected', false, true],
      [425, 'unknown-outcome', false, false],
      [429, 'rate-limited', false, false],
      [500, 'unknown-outcome', false, false],
      [502, 'unknown-outcome', false, false],
      [503, 'unknown-outcome', false, false],
      [504, 'unknown-outcome', false, false],
    ];
    const BODIES: [what: string, type: string, text: string][] = [
      ['JSON', 'application/json', '{"message":"No."}'],
      ['nothing', 'text/plain', ''],
      ['a page', 'text/html; charset=utf-8', '<h1>No.</h1>'],
      ['a page that is not called one', 'text/plain', ' <!DOCTYPE html><p>No.'],
    ];
    const table = OUTCOMES.flatMap(([status, kind, json, page]) =>
      BODIES.map(
        ([what, type, text]) => [status, what, kind, what.includes('page') ? page : json, type, text] as const,
      ),
    );

    it.each(table)(
      '%i with %s is %s, from a wrong address: %s',
      async (status, _what, kind, isWrongAddress, type, text) => {
        const error = await failing((_request, response) =>
          response.writeHead(status, { 'content-type': type }).end(text),
        );
        expect(error).toMatchObject({ kind, status, isWrongAddress });
        expect(error.platformMessage).toBe(text.startsWith('{') ? text : undefined);
        expect(platform.heard).toHaveLength(1);
      },
    );

    it.each(BODIES.slice(2))(
      '200 with %s: a create may have worked, other calls had a wrong address',
      async (_what, type, text) => {
        const page: Answer = (_request, response) => response.writeHead(200, { 'content-type': type }).end(text);
        expect(await failing(page)).toMatchObject({ kind: 'unknown-outcome', status: 200, isWrongAddress: false });
        const check = await failure(http.call({ operation: 'checkUser', body }, () => undefined));
        expect(check).toMatchObject({ kind: 'unknown-outcome', isWrongAddress: true });
      },
    );
  });

  it('does not fail for an unreadable answer that nothing reads', async () => {
    platform.answer = (_request, response) => response.writeHead(200).end('['.repeat(200));
    await http.call({ operation: 'deleteUser', parameters: { userId: 'u-1' } }, () => undefined);
    await expect(http.call({ operation: 'createProvider', body }, (answer) => answer.body)).rejects.toThrow(
      '100 levels',
    );
  });

  describe('a text', () => {
    const answering = (bytes: Buffer, type: string, status = 200) => {
      platform.answer = (_request, response) => response.writeHead(status, { 'content-type': type }).end(bytes);
    };

    it.each(['application/json', 'application/json; charset=ISO-8859-1'])(
      'that is not UTF-8 makes the answer unreadable (%s)',
      async (type) => {
        const bytes = Buffer.from('{"name":"Zo\xeb"}', 'latin1');
        answering(bytes, type);
        const answer = await create();
        expect(() => answer.body).toThrow(expect.objectContaining({ isUnreadable: true }));
        expect(() => answer.body).toThrow('(an answer that is not UTF-8)');
        answering(bytes, type, 400);
        expect(await failure(create())).toMatchObject({ kind: 'rejected', platformMessage: undefined });
      },
    );

    it.each([
      ['nested 200,000 deep', '['.repeat(200_000), 'nested more than 100 levels'],
      ['of 1,000,001 objects', `[${Array(1_000_000).fill('{}').join(',')}]`, 'of more than 1000000 objects and lists'],
    ])('%s is unreadable', async (_what, text, reason) => {
      answering(Buffer.from(text), 'application/json');
      const answer = await create();
      expect(() => answer.value('userId')).toThrow(`(an answer ${reason})`);
    });
  });

  it('is measured only by its operation and outcome', async () => {
    const metrics = new Metrics();
    const measured = httpTo(platform.url, undefined, TIMEOUT, metrics);
    platform.answer = (_request, response) => json(response, 201, {});
    await create({}, measured);
    platform.answer = (_request, response) => json(response, 503, {});
    await failure(create({}, measured));
    platform.answer = (_request, response) => response.writeHead(201).end('{"userId":');
    await failure(measured.call({ operation: 'createProvider', body }, (answer) => answer.requiredId('userId')));
    const calls = await metrics.registry.getSingleMetricAsString('notebridge_platform_calls_total');
    expect(calls.split('\n').filter((line) => line.endsWith(' 1'))).toHaveLength(3);
    expect(calls).toContain('{operation="createProvider",outcome="rate-limited"} 0');
    const text = await metrics.registry.getSingleMetricAsString('notebridge_platform_call_seconds');
    expect(text.split('\n').filter((line) => line.includes('_count'))).toEqual([
      'notebridge_platform_call_seconds_count{operation="createProvider",outcome="ok"} 1',
      'notebridge_platform_call_seconds_count{operation="createProvider",outcome="unknown-outcome"} 1',
      'notebridge_platform_call_seconds_count{operation="createProvider",outcome="unreadable"} 1',
    ]);
  });

  it('passes on the wait of a 429', async () => {
    const error = await failing((_request, response) => json(response, 429, {}, { 'retry-after': '7' }));
    expect(error.retryAfterMs).toBe(7_000);
    expect((await failing((_request, response) => json(response, 429, {}))).retryAfterMs).toBeUndefined();
  });

  it.each([301, 302, 303, 307, 308])('never follows a %i, which could send the key to another host', async (status) => {
    const other = await LoopbackPlatform.start();
    const error = await failing((_request, response) => response.writeHead(status, { location: other.url }).end());
    expect(error).toMatchObject({ kind: 'rejected', status });
    expect(other.connections).toBe(0);
    await other.stop();
  });

  it('has an unknown outcome if the connection breaks after sending', async () => {
    const error = await failing((request) => request.socket.resetAndDestroy());
    expect(error).toMatchObject({ kind: 'unknown-outcome', status: undefined });
    expect(platform.heard).toHaveLength(1);
  });

  it('has an unknown outcome exactly at its timeout', async () => {
    const error = await failing(silence);
    expect(error).toMatchObject({ kind: 'unknown-outcome' });
    expect(error.message).toContain('(timeout)');
    platform.answer = (_request, response) => {
      jest.advanceTimersByTime(TIMEOUT_MS - 1);
      json(response, 200, { userId: 'late' });
    };
    expect((await create()).body).toEqual({ userId: 'late' });
  });

  it('has an unknown outcome if an answer starts and does not end', async () => {
    const stuck = await failing((_request, response) => {
      // Two turns of the loop after it was written it has been read.
      response.writeHead(200).write('{"userId":', async () => {
        for (let turns = 0; turns < 2; turns += 1) await turnOfLoop();
        jest.advanceTimersByTime(TIMEOUT_MS);
      });
    });
    expect(stuck.kind).toBe('unknown-outcome');
    expect(stuck.message).toContain('(timeout)');
    const cut = await failing((request, response) => {
      response.writeHead(200, { 'content-length': '100' }).write('{');
      request.socket.destroySoon();
    });
    expect(cut.kind).toBe('unknown-outcome');
  });

  it.each([false, true])(
    'is unreadable if it is larger than PLATFORM_ANSWER_LIMIT (compressed: %s)',
    async (isPacked) => {
      const limited = httpTo(platform.url, undefined, { ...TIMEOUT, PLATFORM_ANSWER_LIMIT: '1 MiB' });
      const send = (bytes: number) => {
        const text = `{"userId":"u"}`.padEnd(bytes);
        const encoding = isPacked ? { 'content-encoding': 'gzip' } : {};
        platform.answer = (_request, response) =>
          response.writeHead(200, encoding).end(isPacked ? gzipSync(text) : text);
      };
      send(1024 * 1024);
      expect((await create({}, limited)).body).toEqual({ userId: 'u' });
      send(1024 * 1024 + 1);
      const error = await failure(create({}, limited));
      expect(error).toMatchObject({ kind: 'unknown-outcome', isUnreadable: true });
      expect(error.message).toContain('(an answer of more than PLATFORM_ANSWER_LIMIT, 1048576 bytes)');
    },
  );

  it('keeps its status, and the beginning of a message, if a failure is long', async () => {
    const limited = httpTo(platform.url, undefined, { ...TIMEOUT, PLATFORM_ANSWER_LIMIT: '1 MiB' });
    const failingWith = (bytes: number) => {
      platform.answer = (_request, response) => response.writeHead(422).end('x'.repeat(bytes));
      return failure(create({}, limited));
    };
    expect(await failingWith(100_000)).toMatchObject({ status: 422, platformMessage: `${'x'.repeat(499)}…` });
    expect(await failingWith(2 * 1024 * 1024)).toMatchObject({ status: 422, platformMessage: undefined });
  });

  it('has an unknown outcome if the answer is not HTTP', async () => {
    expect(await failing((request) => request.socket.end('hello\r\n\r\n'))).toMatchObject({ kind: 'unknown-outcome' });
  });

  it.each(['not json', '', '{"userId":'])('has an unknown outcome if a 2xx contains %j', async (text) => {
    platform.answer = (_request, response) => response.writeHead(200).end(text);
    const answer = await create();
    expect(() => answer.requiredText('userId')).toThrow(
      expect.objectContaining({ kind: 'unknown-outcome', status: 200 }),
    );
  });

  it('stops at shutdown: nothing sent before, unknown after', async () => {
    expect(await failure(create({ signal: AbortSignal.abort() }))).toMatchObject({ kind: 'unreachable' });
    expect(platform.connections).toBe(0);
    const shutdown = new AbortController();
    platform.answer = () => shutdown.abort();
    expect(await failure(create({ signal: shutdown.signal }))).toMatchObject({ kind: 'unknown-outcome' });
  });

  describe('that was not sent', () => {
    const unreachable = async (url: string, options: CallOptions = {}) => {
      const client = httpTo(url, undefined, TIMEOUT);
      const error = await failure(create(options, client));
      return error;
    };

    it('is unreachable if no server listens', async () => {
      const gone = await LoopbackPlatform.start();
      await gone.stop();
      const error = await unreachable(gone.url);
      expect(error).toMatchObject({ kind: 'unreachable' });
      expect(error.message).toContain('ECONNREFUSED');
    });

    it('is unreachable if the certificate is not trusted', async () => {
      const secure = await LoopbackPlatform.start({ tls: true });
      expect(await unreachable(secure.url)).toMatchObject({ kind: 'unreachable' });
      expect(secure.heard).toEqual([]);
      await secure.stop();
    });

    it('is unreachable if the server has no TLS', async () => {
      expect(await unreachable(platform.url.replace('http:', 'https:'))).toMatchObject({ kind: 'unreachable' });
      expect(platform.heard).toEqual([]);
    });

    it('is unreachable if the connection is not ready within two seconds', async () => {
      const silent: Server = createServer((socket) => socket.on('error', () => undefined));
      await new Promise<void>((resolve) => silent.listen(0, '127.0.0.1', resolve));
      const connected = new Promise((resolve) => silent.once('connection', resolve));
      const address = silent.address();
      const port = typeof address === 'object' ? address?.port : undefined;
      let ended = false;
      const call = unreachable(`https://127.0.0.1:${port}`).finally(() => {
        ended = true;
      });
      await connected;
      jest.advanceTimersByTime(1_900);
      await turnOfLoop();
      expect(ended).toBe(false);
      jest.advanceTimersByTime(100);
      await turnOfLoop();
      expect(ended).toBe(true);
      const error = await call;
      expect(error).toMatchObject({ kind: 'unreachable' });
      expect(error.message).toContain('(connect timeout)');
      silent.close();
    });

    it('has its full timeout for the answer, regardless of the time to connect', async () => {
      platform.answer = (_request, response) => {
        jest.advanceTimersByTime(TIMEOUT_MS - 1);
        json(response, 200, { userId: 'u' });
      };
      expect((await create()).body).toEqual({ userId: 'u' });
    });
  });

  it('fails without showing a key, name, email, URL or answer', async () => {
    const secrets = [API_KEY, 'Jane', 'Secret', 'jane.secret', platform.url.slice(7), 'X-Partner-Key', 'x-partner-key'];
    const answers: Answer[] = [
      ...[302, 400, 403, 404, 429, 500].map<Answer>(
        (status) => (_request, response) =>
          json(response, status, { message: 'Jane Secret exists' }, { location: 'http://127.0.0.1/Jane' }),
      ),
      (request) => request.socket.resetAndDestroy(),
      silence,
      (_request, response) => response.writeHead(200, { 'content-encoding': 'gzip' }).end('Jane'),
    ];
    const errors: unknown[] = [];
    for (const answer of answers) errors.push(await failing(answer));
    platform.answer = (_request, response) => json(response, 200, { name: 'Jane Secret' });
    const unreadable = await create();
    errors.push(await failure(Promise.resolve().then(() => unreadable.requiredText('userId'))));
    const gone = httpTo('http://127.0.0.1:1');
    errors.push(await failure(create({}, gone)));
    errors.push(await failure(gone.call({ operation: 'deleteUser', parameters: { userId: '' } }, () => undefined)));
    for (const error of errors) {
      const printed = [
        inspect(error, { depth: 9, getters: true }),
        JSON.stringify(error),
        String(error),
        String(Reflect.get(Object(error), 'stack')),
      ];
      for (const secret of secrets) expect(printed.filter((text) => text.includes(secret))).toEqual([]);
    }
  });
});
