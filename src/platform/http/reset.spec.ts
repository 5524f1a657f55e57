import { once } from 'node:events';
import { type AddressInfo, createServer as createTcpServer, type Server, Socket } from 'node:net';
import { createServer as createTlsServer, TLSSocket } from 'node:tls';
import { SELF_SIGNED } from '../../../harness/self-signed.js';
import { Attempt, waysOf } from './connections.js';

/** More than the kernels of both sides buffer for a reader that reads nothing. */
const BODY = Buffer.alloc(64 * 1024 * 1024, 'x');

/** The server's side of a connection, and how it ends: a code, or `closed`. */
interface Received {
  socket: Socket;
  end: Promise<string | undefined>;
}

/** Sends a body to a server, gives it up when a first piece was read, and hands the server's side of the connection on. */
async function givenUp(isReset: boolean, server: Server, scheme: 'http' | 'https', body: Buffer): Promise<Received> {
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const connected = once(server, scheme === 'http' ? 'connection' : 'secureConnection') as Promise<[Socket]>;
  const ways = waysOf({ NO_PROXY: [] }, { keepAlive: true, rejectUnauthorized: false });
  const stop = new AbortController();
  const attempt = new Attempt(ways, stop.signal);
  const url = `${scheme}://127.0.0.1:${(server.address() as AddressInfo).port}`;
  const failed = attempt.send({ url, method: 'POST', data: body }).catch(() => undefined);
  const [socket] = await connected;
  const end = new Promise<string | undefined>((resolve) => {
    socket.once('error', ({ code }: NodeJS.ErrnoException) => resolve(code)).once('close', () => resolve('closed'));
  });
  await once(socket, 'readable');
  if (isReset) attempt.reset();
  stop.abort();
  await failed;
  if (scheme === 'https') socket.resume();
  ways.httpAgent.destroy();
  ways.httpsAgent.destroy();
  server.close();
  return { socket, end };
}

test('a reset drops bytes that the kernel would deliver after an orderly close', async () => {
  const deliveredAfter = async (isReset: boolean) => {
    const { socket, end } = await givenUp(isReset, createTcpServer(), 'http', BODY);
    let delivered = 0;
    socket.on('data', (chunk) => {
      delivered += chunk.length;
    });
    socket.resume();
    await end;
    return delivered;
  };
  expect(await deliveredAfter(true)).toBeLessThan(await deliveredAfter(false));
});

test('resets the TCP connection under TLS', async () => {
  const resets = jest.spyOn(Socket.prototype, 'resetAndDestroy');
  const { end } = await givenUp(true, createTlsServer(SELF_SIGNED), 'https', Buffer.from('x'));
  await end;
  expect(resets.mock.instances.map((socket) => socket instanceof TLSSocket)).toEqual([false]);
  expect(resets.mock.results.map(({ type }) => type)).toEqual(['return']);
  resets.mockRestore();
});
