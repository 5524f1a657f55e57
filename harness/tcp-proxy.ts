import { connect, createServer, type Server, type Socket } from 'node:net';

/** Stands between a client and a server, so that a test can take the server away from the client. */
export interface TcpProxy {
  port: number;
  /** The server is gone: connections end, new ones are refused. */
  cut(): Promise<void>;
  /** The server hangs: connections stay and carry nothing, new ones are taken and carry nothing. */
  stall(): void;
  /** The server is back at the same address. */
  restore(): Promise<void>;
  close(): Promise<void>;
}

/** @param target port on 127.0.0.1 */
export async function startTcpProxy(target: number): Promise<TcpProxy> {
  const sockets = new Set<Socket>();
  let stalled = false;
  let server: Server;
  const keep = (socket: Socket) => {
    sockets.add(socket);
    socket.on('error', () => {}).on('close', () => sockets.delete(socket));
  };
  const serve = async (port: number) => {
    server = createServer((client) => {
      const upstream = connect(target, '127.0.0.1');
      keep(client);
      keep(upstream);
      client.on('close', () => upstream.destroy());
      upstream.on('close', () => client.destroy());
      client.pipe(upstream).pipe(client);
      if (stalled) for (const socket of [client, upstream]) socket.unpipe().pause();
    });
    await new Promise<void>((resolve) => server.listen(port, '127.0.0.1', resolve));
    const address = server.address();
    return typeof address === 'object' && address ? address.port : port;
  };
  const cut = async () => {
    const closed = new Promise((resolve) => server.close(resolve));
    for (const socket of sockets) socket.destroy();
    await closed;
  };
  const port = await serve(0);
  return {
    port,
    cut,
    stall: () => {
      stalled = true;
      for (const socket of sockets) socket.unpipe().pause();
    },
    restore: async () => {
      stalled = false;
      if (server.listening) await cut();
      await serve(port);
    },
    close: async () => {
      if (server.listening) await cut();
    },
  };
}
