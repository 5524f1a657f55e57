import { once } from 'node:events';
import type { Socket } from 'node:net';
import { useWorld } from '../world/use-world.js';
import { connectTo, firstAnswer, headOf, wholeAnswer } from './connection.js';

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
  const socket = connectTo(world, `${headOf('PUT', '/v1/providers/p-1', { 'content-length': 1_000 })}x`);
  const answer = wholeAnswer(socket);
  await once(socket, 'data');
  while (!socket.closed) await world.advance('30 s');
  expect(await answer).toMatch(/^HTTP\/1.1 401 /);
});

describe('with too many connections', () => {
  test('new ones are closed, open ones stay, and the service answers again once one has ended', async () => {
    const service = await world.startAnother({ MAX_CONNECTIONS: '3' });
    const busy: Socket[] = [];
    for (let at = 0; at < 3; at += 1) {
      const socket = connectTo(service, begun(FORGED, 1_000, 1));
      await once(service.app.getHttpServer(), 'request');
      busy.push(socket);
    }
    const turnedAway = connectTo(service, begun({}, 2, 2));
    expect(await firstAnswer(turnedAway)).toBe('');
    expect(busy.map(({ closed }) => closed)).toEqual([false, false, false]);
    for (const socket of busy) socket.destroy();
    await world.eventually('it answers again', async () => {
      const answer = await firstAnswer(connectTo(service, begun({}, 2, 2)));
      return answer.startsWith('HTTP/1.1 401 ');
    });
  });
});
