import { Env } from '../../src/config/env.js';
import { ADMIN_KEY } from '../support/app.js';
import { useWorld } from '../world/use-world.js';
import { connectTo, wholeAnswer } from './connection.js';

const world = useWorld();

const KEY = `Authorization: Bearer ${ADMIN_KEY}`;

/** A request that a proxy in front would take for a part of the body of the first. */
const HIDDEN = `GET /v1/capabilities HTTP/1.1\r\nHost: x\r\n${KEY}\r\n\r\n`;
const LENGTH = `Content-Length: ${HIDDEN.length + 5}`;

/** Headers and a body whose end is unclear, or that proxies read in different ways. */
const UNCLEAR: [what: string, headers: string, body?: string][] = [
  ['a length and chunks', `${LENGTH}\r\nTransfer-Encoding: chunked`],
  ['chunks and a length', `Transfer-Encoding: chunked\r\n${LENGTH}`],
  ['two lengths', `Content-Length: 0\r\n${LENGTH}`],
  ['a list of lengths', 'Content-Length: 0, 5'],
  ['a length with a sign', 'Content-Length: +5'],
  ['a length in hexadecimal', 'Content-Length: 0x5'],
  ['an unknown transfer encoding', 'Transfer-Encoding: xchunked'],
  ['chunks that are not last', 'Transfer-Encoding: chunked, identity'],
  ['two transfer encodings', 'Transfer-Encoding: chunked\r\nTransfer-Encoding: identity'],
  ['a blank before a colon', 'Transfer-Encoding : chunked'],
  ['a header on a second line', 'Transfer-Encoding:\r\n chunked'],
  ['a bare LF between headers', `${LENGTH}\nTransfer-Encoding: chunked`],
  ['a bare CR between headers', `${LENGTH}\rTransfer-Encoding: chunked`],
  ['a bare LF at the end of the headers', 'X: y\n\r\n'],
  ['a chunk whose size is not a number', 'Transfer-Encoding: chunked', '0x5\r\nhello\r\n0\r\n\r\n'],
  ['a chunk with a bare LF', 'Transfer-Encoding: chunked', '5\nhello\r\n0\r\n\r\n'],
];

describe('a request whose end is unclear', () => {
  test.each(UNCLEAR)(
    '%s: nothing behind it is answered, and its connection closes',
    async (_, headers, body = '0\r\n\r\n') => {
      for (const first of [`POST /v1/people/search HTTP/1.1\r\n${KEY}`, 'POST /webhooks/platform HTTP/1.1']) {
        const socket = connectTo(world, `${first}\r\nHost: x\r\n${headers}\r\n\r\n${body}${HIDDEN}`);
        const statuses = (await wholeAnswer(socket)).match(/(?<=HTTP\/1\.1 )\d+/g) ?? [];
        // A request without a signature is refused before its body is read.
        expect([['400'], ['401', '400']]).toContainEqual(statuses);
      }
    },
  );
});

test('TRACE is refused, and its answer repeats no header', async () => {
  for (const path of ['/', '/v1/providers', '/webhooks/platform', '/console', '/nowhere']) {
    const head = `TRACE ${path} HTTP/1.1\r\nHost: x\r\n${KEY}\r\nX-Secret: hunter2\r\nConnection: close\r\n\r\n`;
    const answer = await wholeAnswer(connectTo(world, head));
    expect(answer).toMatch(/^HTTP\/1\.1 40[45] /);
    expect(answer).not.toMatch(/hunter2|allow: .*TRACE/i);
  }
});

describe('names that lead to the prototype of objects', () => {
  const POLLUTING = [
    '{"__proto__": {"polluted": 1}}',
    '{"constructor": {"prototype": {"polluted": 1}}}',
    '{"speakerMapping": {"A": {"__proto__": {"polluted": 1}}}}',
    '{"speakerMapping": {"__proto__": {"polluted": 1}}}',
    '{"speakerMapping": [{"constructor": {"prototype": {"polluted": 1}}}]}',
  ];
  const QUERIES = [
    '__proto__[polluted]=1',
    '__proto__=1',
    'constructor.prototype.polluted=1',
    'constructor[prototype]=1',
  ];
  test('are refused in bodies, and change no prototype in queries either', async () => {
    // That of the service, because this file has its own globals.
    let shared: object = world.get(Env);
    while (Object.getPrototypeOf(shared) !== null) shared = Object.getPrototypeOf(shared) as object;
    const before = Object.getOwnPropertyNames(shared);
    const headers = { 'content-type': 'application/json' };
    for (const text of POLLUTING)
      for (const line of ['PUT /v1/providers/p-1', 'PATCH /v1/sessions/s-1']) {
        const [method = '', path = ''] = line.split(' ');
        const { body } = await world.call(method, path, { body: Buffer.from(text), headers });
        expect([line, text, body]).toMatchObject([line, text, { type: 'urn:notebridge:problem:bad-json' }]);
      }
    for (const query of QUERIES)
      expect([200, 400]).toContain((await world.call('GET', `/v1/providers?${query}`)).status);
    expect(Object.getOwnPropertyNames(shared)).toEqual(before);
  });
});
