import { createReadStream, mkdtempSync, openAsBlob, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { createClient } from './create-client.js';
import { NotebridgeError } from './notebridge-error.js';
import { type Answer, json, useAnsweringServer } from './sending/answering-server.spec-support.js';

const server = useAnsweringServer();
const folder = mkdtempSync(path.join(tmpdir(), 'notebridge-client-'));

afterAll(() => rmSync(folder, { recursive: true }));

const newClient = (options = {}) => createClient({ url: server.url, attempts: 2, ...options });

/** Cuts the connection after half of the body. */
const cutOff =
  (status = 200): Answer =>
  (response) =>
    response
      .writeHead(status, { 'content-type': 'application/json', 'content-length': 100 })
      .write('{"items": [', () => response.destroy());

const lost: Answer = (response) => response.destroy();

const failureOf = (call: Promise<unknown>): Promise<unknown> =>
  call.then(
    () => 'no failure',
    (error: unknown) => error,
  );

const faultOf = (options: object): string => {
  try {
    createClient({ url: 'https://notebridge.example', ...options });
    return 'none';
  } catch (error) {
    return String(error);
  }
};

const typeOf = async (call: Promise<unknown>) => {
  const error = await failureOf(call);
  expect(error).toBeInstanceOf(NotebridgeError);
  return [(error as NotebridgeError).type, (error as NotebridgeError).status];
};

describe('createClient', () => {
  test.each([
    undefined,
    '',
    'notebridge.example',
    'localhost:3000',
    'ftp://notebridge.example',
    'https://user:s3cret@notebridge.example',
    'https://s3cret@notebridge.example',
    'https://notebridge.example/?key=s3cret',
    'https://notebridge.example/#s3cret',
    'https://notebridge.example?',
  ])('rejects the url %j', (wrong) => {
    expect(faultOf({ url: wrong as string })).toMatch(/^TypeError: .*\burl\b/);
    expect(faultOf({ url: wrong as string })).not.toContain('s3cret');
  });

  test.each(['key', 'onBehalfOf', 'purpose'])('rejects a header value in %s that cannot be sent', (name) => {
    for (const wrong of ['s3cret\nline', 's3cret \u0142', 's3cret\0', 7]) {
      expect(faultOf({ [name]: wrong })).toMatch(new RegExp(`^TypeError: .*\\b${name}\\b`));
      expect(faultOf({ [name]: wrong })).not.toContain('s3cret');
    }
  });

  test.each([{}, { key: 'nb_1', onBehalfOf: 'user-7', purpose: 'TREAT' }, { key: undefined, attempts: undefined }])(
    'accepts %j',
    (options) => {
      expect(faultOf(options)).toBe('none');
    },
  );

  test('sends below the path of its url', async () => {
    server.answers = [json('{"items": []}')];
    for (const end of ['', '/']) await newClient({ url: `${server.url}/prefix${end}` }).GET('/v1/clients');
    expect(server.requests).toEqual(['GET /prefix/v1/clients', 'GET /prefix/v1/clients']);
  });
});

describe('an answer', () => {
  test.each(['{"items": [', ''])('of the JSON "%s" is unreadable-answer', async (body) => {
    server.answers = [json(body)];
    expect(await typeOf(newClient().GET('/v1/clients'))).toEqual(['unreadable-answer', 200]);
    expect(server.requests).toHaveLength(1);
  });

  test('that is empty is an empty text', async () => {
    server.answers = [json('')];
    expect((await newClient().GET('/v1/clients', { parseAs: 'text' })).data).toBe('');
  });

  test.each(['json', 'text', 'blob', 'arrayBuffer'] as const)(
    'that is cut off is asked for again, and is then no-answer (%s)',
    async (parseAs) => {
      server.answers = [cutOff(), json('{"items": []}')];
      await newClient().GET('/v1/clients', { parseAs });
      expect(server.requests).toHaveLength(2);
      server.answers = [cutOff()];
      expect(await typeOf(newClient({ attempts: 1 }).GET('/v1/clients', { parseAs }))).toEqual(['no-answer', 0]);
    },
  );

  test('of an error that is cut off is no-answer', async () => {
    server.answers = [cutOff(404)];
    expect(await typeOf(newClient({ attempts: 1 }).GET('/v1/clients'))).toEqual(['no-answer', 0]);
  });

  test('that does not begin in time is no-answer', async () => {
    server.answers = [(response) => setTimeout(() => json('{"items": []}')(response, response.req), 300)];
    expect(await typeOf(newClient({ attempts: 1, answerTimeoutMs: 50 }).GET('/v1/clients'))).toEqual(['no-answer', 0]);
    for (const answerTimeoutMs of [Number.POSITIVE_INFINITY, undefined])
      expect((await newClient({ answerTimeoutMs }).GET('/v1/clients')).data).toEqual({ items: [] });
  });
});

describe('a streamed answer', () => {
  const read = async (data: unknown) => {
    let text = '';
    for await (const chunk of data as AsyncIterable<Uint8Array>) text += Buffer.from(chunk).toString();
    return text;
  };

  test.each(['read', 'cancelled', 'cut off'])('that is %s leaves no listener at the signal', async (end) => {
    server.answers = [end === 'cut off' ? cutOff() : json('{"items": []}')];
    const { signal } = new AbortController();
    const added = jest.spyOn(signal, 'addEventListener');
    const removed = jest.spyOn(signal, 'removeEventListener');
    const { data } = await newClient().GET('/v1/clients', { parseAs: 'stream', signal });
    const ours = added.mock.calls.map(([, listener]) => listener);
    if (end === 'cancelled') await (data as unknown as ReadableStream).cancel();
    else if (end === 'read') expect(await read(data)).toBe('{"items": []}');
    else await expect(read(data)).rejects.toThrow();
    expect(ours).toHaveLength(1);
    expect(removed.mock.calls.map(([, listener]) => listener)).toEqual(expect.arrayContaining(ours));
  });

  test('ends when its signal is aborted', async () => {
    server.answers = [(response) => response.writeHead(200).write('x')];
    const stopping = new AbortController();
    const { data } = await newClient().GET('/v1/clients', { parseAs: 'stream', signal: stopping.signal });
    setTimeout(() => stopping.abort(), 50);
    await expect(read(data)).rejects.toThrow();
  });
});

describe('a DELETE', () => {
  const remove = () => newClient({ attempts: 3 }).DELETE('/v1/subscriptions/{id}', { params: { path: { id: '1' } } });
  const unknown = json('{"type": "urn:notebridge:problem:unknown-subscription"}', 404);

  test('whose answer was lost is done if it is then answered 404', async () => {
    server.answers = [lost, unknown];
    const { data, response } = await remove();
    expect([data, response.status, server.requests.length]).toEqual([undefined, 204, 2]);
  });

  test('that is answered 404 immediately fails', async () => {
    server.answers = [unknown];
    expect(await typeOf(remove())).toEqual(['unknown-subscription', 404]);
  });
});

describe("a fault of the caller's file", () => {
  const upload = (body: Parameters<ReturnType<typeof newClient>['upload']>[1], length?: number) =>
    failureOf(newClient().upload('/v1/recordings', body, { type: 'audio/wav', ...(length && { length }) }));

  beforeEach(() => {
    server.answers = [json('{}', 201)];
  });

  test('that is missing is thrown as it is', async () => {
    const missing = path.join(folder, 'missing.wav');
    expect(await upload(() => createReadStream(missing), 10)).toMatchObject({ code: 'ENOENT', path: missing });
    expect(server.requests.length).toBeLessThanOrEqual(1);
  });

  test('that cannot be opened, or read to its end, is thrown as it is', async () => {
    const fault = new Error('disk failure');
    const opening = () => {
      throw fault;
    };
    expect(await upload(opening, 10)).toBe(fault);
    const reading = async function* () {
      yield new Uint8Array(5);
      throw fault;
    };
    expect(await upload(reading, 10)).toBe(fault);
    expect(server.requests.length).toBeLessThanOrEqual(1);
  });

  test('of a missing service is no-answer, and closes the stream', async () => {
    const file = path.join(folder, 'visit.wav');
    writeFileSync(file, 'sound');
    const streams: ReturnType<typeof createReadStream>[] = [];
    const open = () => {
      const stream = createReadStream(file);
      streams.push(stream);
      return stream;
    };
    const client = createClient({ url: 'http://127.0.0.1:2', attempts: 2 });
    const options = { type: 'audio/wav', length: 5 };
    expect(await typeOf(client.upload('/v1/recordings', open, options))).toEqual(['no-answer', 0]);
    expect(streams).toHaveLength(2);
    for (const stream of streams)
      if (!stream.closed) await new Promise<void>((resolve) => stream.once('close', resolve));
  });

  test.each([4, 6])('of 5 bytes instead of %d names the difference', async (length) => {
    const five = async function* () {
      yield new Uint8Array(5);
    };
    expect(await upload(five, length)).toMatchObject({ code: 'UND_ERR_REQ_CONTENT_LENGTH_MISMATCH' });
    expect(server.requests.length).toBeLessThanOrEqual(1);
  });

  test('that has changed since openAsBlob is thrown as it is', async () => {
    const file = path.join(folder, 'changing.wav');
    writeFileSync(file, 'sound');
    const blob = await openAsBlob(file);
    writeFileSync(file, 'another sound');
    expect(await upload(blob)).toMatchObject({ name: 'NotReadableError' });
    expect(server.requests.length).toBeLessThanOrEqual(1);
  });

  test.each(['visit.wav', Buffer.from('sound'), new ReadableStream(), undefined])(
    'that is passed as %p is a TypeError that names what to pass',
    async (body) => {
      const error = await upload(body as unknown as Blob, 5);
      expect(error).toBeInstanceOf(TypeError);
      expect(error).toMatchObject({ message: expect.stringContaining('openAsBlob(path)') });
      expect(server.requests).toEqual([]);
    },
  );
});
