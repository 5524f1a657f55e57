import { once } from 'node:events';
import { createServer, type IncomingMessage, type Server } from 'node:http';
import { type AddressInfo, connect, type Socket } from 'node:net';

/** A real CONNECT proxy on a free loopback port. Every host leads to one loopback port. */
export class ConnectProxy {
  /** The headers of each CONNECT, with its host and port. */
  readonly asked: { authority: string; headers: IncomingMessage['headers'] }[] = [];
  /** The answer to CONNECT; `never` leaves it without one. */
  answer: number | 'never' = 200;
  readonly sockets = new Set<Socket>();
  url = '';

  private constructor(private readonly server: Server) {}

  static async start(targetPort: number): Promise<ConnectProxy> {
    const server = createServer();
    const proxy = new ConnectProxy(server);
    server.on('connection', (socket: Socket) => {
      proxy.sockets.add(socket.on('error', () => undefined));
      socket.once('close', () => proxy.sockets.delete(socket));
    });
    server.on('connect', ({ url: authority = '', headers }: IncomingMessage, client: Socket) => {
      proxy.asked.push({ authority, headers });
      if (proxy.answer === 'never') return;
      if (proxy.answer !== 200) return client.end(`HTTP/1.1 ${proxy.answer} No\r\n\r\n`);
      const target = connect(targetPort, '127.0.0.1', () => {
        client.write('HTTP/1.1 200 OK\r\n\r\n');
        target.pipe(client).pipe(target);
      });
      target.on('error', () => client.destroy());
      client.on('close', () => target.destroy());
    });
    server.listen(0, '127.0.0.1');
    await once(server, 'listening');
    proxy.url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
    return proxy;
  }

  async stop(): Promise<void> {
    for (const socket of this.sockets) socket.destroy();
    await new Promise((resolve) => this.server.close(resolve));
  }
}
