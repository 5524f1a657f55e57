import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import { createClient } from '../create-client.js';
import { NotebridgeError } from '../notebridge-error.js';
import { type Answer, json, useAnsweringServer } from './answering-server.spec-support.js';

const server = useAnsweringServer();
const newClient = (options = {}) => createClient({ url: server.url, attempts: 1, ...options });

setFlagsFromString('--expose-gc');
const collect = runInNewContext('gc') as () => void;

/** Collects garbage again and again, as a busy process does. */
function collectWhile<T>(work: Promise<T>): Promise<T> {
  const collecting = setInterval(collect, 20);
  return work.finally(() => clearInterval(collecting));
}

const failureOf = (call: Promise<unknown>): Promise<unknown> =>
  call.then(
    () => 'no failure',
    (error: unknown) => error,
  );

const never: Answer = () => undefined;
/** Begins an answer that does not end. */
const begin: Answer = (response) => response.writeHead(200, { 'content-type': 'application/json' }).write('{"items":');

describe('after a garbage collection', () => {
  const reason = new Error('enough');
  const abortIn = (ms: number) => {
    const stopping = new AbortController();
    setTimeout(() => stopping.abort(reason), ms);
    return stopping.signal;
  };

  test.each([
    ['no answer', never],
    ['the beginning of an answer', begin],
  ])('an abort ends a call with %s', async (_, answer) => {
    server.answers = [answer];
    const call = newClient().GET('/v1/clients', { signal: abortIn(300) });
    expect(await collectWhile(failureOf(call))).toBe(reason);
  });

  test('an abort ends a streamed answer', async () => {
    server.answers = [begin];
    const { data } = await newClient().GET('/v1/clients', { parseAs: 'stream', signal: abortIn(300) });
    const reading = (async () => {
      for await (const _ of data as unknown as AsyncIterable<Uint8Array>);
    })();
    expect(await collectWhile(failureOf(reading))).toBe(reason);
  });

  test.each(['json', 'stream'] as const)('the time limit ends a call without an answer (%s)', async (parseAs) => {
    server.answers = [never];
    const call = newClient({ answerTimeoutMs: 300 }).GET('/v1/clients', { parseAs });
    expect(await collectWhile(failureOf(call))).toMatchObject({ type: 'no-answer' });
  });
});

describe('answerTimeoutMs', () => {
  test.each(['json', 'text'] as const)('limits the whole answer (%s)', async (parseAs) => {
    server.answers = [begin];
    const call = newClient({ answerTimeoutMs: 100 }).GET('/v1/clients', { parseAs });
    expect(await failureOf(call)).toMatchObject({ type: 'no-answer', message: expect.stringContaining('0.1 s') });
  });

  test('limits the whole answer of an error, also if a stream was asked for', async () => {
    server.answers = [(response) => response.writeHead(404).write('{')];
    const call = newClient({ answerTimeoutMs: 100 }).GET('/v1/clients', { parseAs: 'stream' });
    expect(await failureOf(call)).toMatchObject({ type: 'no-answer' });
  });

  test('limits only the beginning of a streamed answer', async () => {
    let end = () => {};
    server.answers = [
      (response) => {
        response.writeHead(200).write('a');
        end = () => void response.end('b');
      },
    ];
    jest.useFakeTimers({ doNotFake: ['nextTick', 'setImmediate'] });
    try {
      const { data } = await newClient({ answerTimeoutMs: 150 }).GET('/v1/clients', { parseAs: 'stream' });
      jest.advanceTimersByTime(150);
      end();
      expect(await new Response(data).text()).toBe('ab');
    } finally {
      jest.useRealTimers();
    }
  });

  test.each([2 ** 31, Number.POSITIVE_INFINITY])('of %d is no limit', async (answerTimeoutMs) => {
    server.answers = [(response) => setTimeout(() => json('{"items": []}')(response, response.req), 100)];
    expect((await newClient({ answerTimeoutMs }).GET('/v1/clients')).data).toEqual({ items: [] });
  });

  test('never shortens the polls of waitFor and events', async () => {
    server.answers = [
      (response) => setTimeout(() => json('{"sync": {"state": "synced"}}')(response, response.req), 200),
    ];
    await newClient({ answerTimeoutMs: 50 }).waitFor('client', 'C-1');
    const page = '{"items": [{"cursor": "1-1"}], "cursor": "1-1", "nextCursor": null}';
    server.answers = [(response) => setTimeout(() => json(page)(response, response.req), 200)];
    for await (const { cursor } of newClient({ answerTimeoutMs: 50 }).events()) {
      expect(cursor).toBe('1-1');
      break;
    }
  });
});

describe('a redirect', () => {
  const movedTo =
    (location: string): Answer =>
    (response) =>
      response.writeHead(301, { location }).end();
  const path = { externalId: 'C-1' };

  test('of a GET is followed within the service, as for a renamed id', async () => {
    server.answers = [movedTo('/v1/clients/C-2'), json('{"externalId": "C-2"}')];
    const { data } = await newClient().GET('/v1/clients/{externalId}', { params: { path } });
    expect(data.externalId).toBe('C-2');
    expect(server.requests).toEqual(['GET /v1/clients/C-1', 'GET /v1/clients/C-2']);
  });

  test.each(['GET', 'POST', 'PUT', 'DELETE'] as const)('of a %s to another host is an error', async (method) => {
    const elsewhere = `http://localhost:${new URL(server.url).port}/v1/sessions`;
    server.answers = [movedTo(elsewhere), json('{}')];
    const call = newClient({ attempts: 2 })[method] as (path: string, options: object) => Promise<unknown>;
    const error = (await failureOf(call('/v1/sessions', method === 'GET' ? {} : { body: {} }))) as NotebridgeError;
    expect(error).toBeInstanceOf(NotebridgeError);
    expect([error.type, error.status]).toEqual(['unreadable-answer', 301]);
    expect(error.message).toContain(`redirects this ${method} to ${elsewhere}`);
    expect(server.requests).toHaveLength(1);
  });

  test('of a GET is followed by a browser, which hides its target', async () => {
    const hidden = Object.defineProperty(new Response(), 'type', { value: 'opaqueredirect' });
    const fetch = async (request: unknown) => ((request as Request).redirect === 'follow' ? Response.json({}) : hidden);
    const { data } = await newClient({ fetch }).GET('/v1/clients/{externalId}', { params: { path } });
    expect(data).toEqual({});
  });

  test('of a PUT within the service is an error', async () => {
    server.answers = [movedTo('/v1/clients/C-2')];
    const body = { firstName: 'Tomas', lastName: 'Lind', providers: [] };
    const call = newClient({ attempts: 2 }).PUT('/v1/clients/{externalId}', { params: { path }, body });
    expect(await failureOf(call)).toMatchObject({ type: 'unreadable-answer', status: 301 });
    expect(server.requests).toHaveLength(1);
  });
});

describe('a path', () => {
  const put = (externalId: unknown) =>
    failureOf(
      newClient().PUT('/v1/clients/{externalId}', {
        params: { path: { externalId: externalId as string } },
        body: { firstName: 'Tomas', lastName: 'Lind', providers: [] },
      }),
    );

  test.each([undefined, null, '', '.', '..', {}, Number.NaN])(
    'is not called with %j as its parameter',
    async (value) => {
      server.answers = [json('{}')];
      const error = await put(value);
      expect(error).toBeInstanceOf(TypeError);
      expect(error).toMatchObject({ message: expect.stringContaining('params.path.externalId') });
      expect(server.requests).toEqual([]);
    },
  );

  test('is not called without its parameters', async () => {
    const call = newClient().GET as (path: string) => Promise<unknown>;
    expect(await failureOf(call('/v1/clients/{externalId}'))).toBeInstanceOf(TypeError);
    expect(server.requests).toEqual([]);
  });

  test.each([
    ['a/b', 'a%2Fb'],
    ['...', '...'],
    [7, '7'],
  ])('is called with %j encoded', async (value, sent) => {
    server.answers = [json('{}')];
    expect(await put(value)).toBe('no failure');
    expect(server.requests).toEqual([`PUT /v1/clients/${sent}`]);
  });
});
