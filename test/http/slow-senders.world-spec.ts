import { once } from 'node:events';
import type { Socket } from 'node:net';
import { BodyMemory } from '../../src/http/body/body-memory.js';
import { deliver, sessionEvent, signed } from '../support/webhook-requests.js';
import { nextCall } from '../world/next-call.js';
import { useWorld } from '../world/use-world.js';
import { connectTo, firstAnswer, headOf, wholeAnswer } from './connection.js';

const KIB = 1024;

/** Well-formed headers with a signature that no secret made. */
const FORGED = { 'x-service-signature': 'a'.repeat(64), 'x-service-timestamp': '1800000000000' };

const world = useWorld();

/** The beginning of a delivery. */
const begun = (headers: Record<string, string>, length: number, sent: number) =>
  Buffer.concat([
    Buffer.from(headOf('POST', '/webhooks/platform', { 'content-length': length, ...headers })),
    Buffer.alloc(sent, 'x'),
  ]);

test('the rest of a body whose sender was answered is waited for only as long as a body may take', async () => {
  const socket = connectTo(world, begun({}, 1_000, 1));
  const answer = wholeAnswer(socket);
  await once(socket, 'data');
  while (!socket.closed) await world.advance('30 s');
  expect(await answer).toMatch(/^HTTP\/1.1 401 /);
});

test('bodies that stall give way to those that arrive', async () => {
  const settings = { WEBHOOK_BODY_LIMIT: '256 KiB', WEBHOOK_MEMORY_LIMIT: '1 MiB' };
  const service = await world.startAnother(settings);
  const stalling = Array.from({ length: 10 }, () => connectTo(service, begun(FORGED, 256 * KIB, 200 * KIB)));
  const answers: string[] = [];
  // Only five of the ten fit.
  await new Promise<void>((resolve) => {
    for (const socket of stalling)
      socket.on('data', (answer: Buffer) => answers.push(String(answer)) === 5 && resolve());
  });
  expect(answers).toEqual(Array(5).fill(expect.stringMatching(/^HTTP\/1.1 503 [\s\S]*problem:busy/)));
  const large = { ...JSON.parse(sessionEvent('large')), padding: 'x'.repeat(200 * KIB) };
  expect((await deliver(service, signed(JSON.stringify(large)))).status).toBe(204);
  for (const socket of stalling) socket.destroy();
});

describe('with too many connections', () => {
  const MAX_CONNECTIONS = 3;

  test('the longest idle one gives way, and the receiver still answers', async () => {
    const service = await world.startAnother({ MAX_CONNECTIONS: String(MAX_CONNECTIONS) });
    const parts = ['', 'POST /webhooks/platform HTTP/1.1\r\nHost: x\r\n', 'GET /nowhere HTTP/1.1\r\nHost: x\r\n\r\n'];
    const idle: Socket[] = [];
    for (let at = 0; at < 30; at += 1) {
      const socket = connectTo(service, parts[at % parts.length]);
      idle.push(socket.resume());
      await once(socket, 'connect');
      const oldest = idle[at - MAX_CONNECTIONS];
      if (oldest && !oldest.closed) await once(oldest, 'close');
    }
    expect((await deliver(service, signed(sessionEvent('genuine')))).status).toBe(204);
    for (const socket of idle) socket.destroy();
  });

  test('none that carries a request gives way', async () => {
    const service = await world.startAnother({ MAX_CONNECTIONS: String(MAX_CONNECTIONS) });
    const busy: Socket[] = [];
    while (busy.length < MAX_CONNECTIONS) {
      const arriving = nextCall(BodyMemory.prototype, 'watch');
      busy.push(connectTo(service, begun(FORGED, 1_000, 1)));
      await arriving;
    }
    expect(await firstAnswer(connectTo(service, begun({}, 2, 2)))).toBe('');
    expect(busy.map(({ closed }) => closed)).toEqual([false, false, false]);
    for (const socket of busy) socket.destroy();
    let answer = '';
    while (answer === '') answer = await firstAnswer(connectTo(service, begun({}, 2, 2)));
    expect(answer).toMatch(/^HTTP\/1.1 401 /);
  });
});
