import { once } from 'node:events';
import type { ClientRequest } from 'node:http';
import { type AddressInfo, createServer as createTcpServer, type Server, Socket } from 'node:net';
import { createServer as createTlsServer, TLSSocket } from 'node:tls';
import { urlToHttpOptions } from 'node:url';
import { SELF_SIGNED } from '../../../harness/self-signed.js';
import { ConnectionWatch, resettableAgents } from './connections.js';

/** More than the kernels of both sides buffer for a reader that reads nothing. */
const BODY = Buffer.alloc(64 * 1024 * 1024, 'x');

/** The server's side of a connection, and how it ends: a code, or `closed`. */
interface Received {
  socket: Socket;
  end: Promise<string | undefined>;
}

type GiveUp = (watch: ConnectionWatch, request: ClientRequest) => void;

const reset: GiveUp = (watch, request) => {
  watch.reset();
  request.destroy();
};
const orderly: GiveUp = (_watch, request) => request.destroy();

/** Sends a body to a server, gives it up when a first piece was read, and hands the server's side of the connection on. */
async function givenUp(giveUp: GiveUp, server: Server, scheme: 'http' | 'https', body: Buffer): Promise<Received> {
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const connected = once(server, scheme === 'http' ? 'connection' : 'secureConnection') as Promise<[Socket]>;
  const agents = resettableAgents({ keepAlive: true, rejectUnauthorized: false });
  const watch = new ConnectionWatch(() => undefined);
  const url = new URL(`${scheme}://127.0.0.1:${(server.address() as AddressInfo).port}`);
  const options = { method: 'POST', agent: agents[`${scheme}Agent`] };
  const request = watch.request({ ...urlToHttpOptions(url), ...options }, () => undefined);
  const failed = once(request, 'error');
  request.end(body);
  const [socket] = await connected;
  const end = new Promise<string | undefined>((resolve) => {
    socket.once('error', ({ code }: NodeJS.ErrnoException) => resolve(code)).once('close', () => resolve('closed'));
  });
  await once(socket, 'readable');
  giveUp(watch, request);
  await failed;
  if (scheme === 'https') socket.resume();
  for (const agent of Object.values(agents)) agent.destroy();
  server.close();
  return { socket, end };
}

test('a reset drops bytes that the kernel would deliver after an orderly close', async () => {
  const deliveredAfter = async (giveUp: GiveUp) => {
    const { socket, end } = await givenUp(giveUp, createTcpServer(), 'http', BODY);
    let delivered = 0;
    socket.on('data', (chunk) => {
      delivered += chunk.length;
    });
    socket.resume();
    await end;
    return delivered;
  };
  expect(await deliveredAfter(reset)).toBeLessThan(await deliveredAfter(orderly));
});

test('resets the TCP connection under TLS', async () => {
  const resets = jest.spyOn(Socket.prototype, 'resetAndDestroy');
  const { end } = await givenUp(reset, createTlsServer(SELF_SIGNED), 'https', Buffer.from('x'));
  await end;
  expect(resets.mock.instances.map((socket) => socket instanceof TLSSocket)).toEqual([false]);
  expect(resets.mock.results.map(({ type }) => type)).toEqual(['return']);
  resets.mockRestore();
});
