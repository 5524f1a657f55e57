import { connect, createServer, type Server, type Socket } from 'node:net';
import { freePort } from './free-port.js';

/** How long TCP keep-alive takes to end a lost connection: Node asks after 5 s, then ten times, once a second. */
export const KEEP_ALIVE_ENDS_MS = 15_000;

/** A proxy that can make a server unavailable to its clients. */
export interface TcpProxy {
  port: number;
  /** Ends all connections and refuses new ones. */
  cut(): Promise<void>;
  /** Makes the server hang: old and new connections stay open but carry no data. */
  stall(): void;
  /** Ends a stall. Data sent during it arrives. */
  resume(): void;
  /**
   * As after a failover: current connections stay open but never carry data again; new ones reach the server.
   *
   * @param endMs ends them later, as TCP keep-alive does; the kernel of this machine answers it, so it notices nothing here
   */
  silence(endMs?: number): void;
  /** Makes the server available again after `cut` or `stall`. Old connections end. */
  restore(): Promise<void>;
  /** Leads new connections to another server; current ones stay. */
  lead(target: number): void;
  close(): Promise<void>;
}

/** @param target port on 127.0.0.1 */
export async function startTcpProxy(target: number): Promise<TcpProxy> {
  const pairs = new Set<readonly [Socket, Socket]>();
  let stalled = false;
  let leadsTo = target;
  let server: Server;
  const connectPair = ([client, upstream]: readonly [Socket, Socket]) => client.pipe(upstream).pipe(client);
  const pausePair = (pair: readonly [Socket, Socket]) => {
    for (const socket of pair) socket.unpipe().pause();
  };
  const serve = async (port: number) => {
    server = createServer((client) => {
      const upstream = connect(leadsTo, '127.0.0.1');
      const pair = [client, upstream] as const;
      pairs.add(pair);
      for (const [socket, other] of [pair, [upstream, client] as const]) {
        socket
          .on('error', () => {})
          .on('close', () => {
            other.destroy();
            pairs.delete(pair);
          });
      }
      if (stalled) pausePair(pair);
      else connectPair(pair);
    });
    await new Promise<void>((resolve) => server.listen(port, '127.0.0.1', resolve));
  };
  const cut = async () => {
    const closed = new Promise((resolve) => server.close(resolve));
    for (const [client, upstream] of pairs) {
      client.destroy();
      upstream.destroy();
    }
    await closed;
  };
  // Outside the ephemeral ports, because it must still be free after a cut.
  const port = await freePort();
  await serve(port);
  return {
    port,
    cut,
    stall: () => {
      stalled = true;
      for (const pair of pairs) pausePair(pair);
    },
    resume: () => {
      stalled = false;
      for (const pair of pairs) connectPair(pair);
    },
    silence: (endMs) => {
      const silent = [...pairs];
      for (const pair of silent) pausePair(pair);
      if (endMs === undefined) return;
      setTimeout(() => {
        for (const socket of silent.flat()) socket.destroy();
      }, endMs).unref();
    },
    restore: async () => {
      stalled = false;
      if (server.listening) await cut();
      await serve(port);
    },
    lead: (next) => {
      leadsTo = next;
    },
    close: async () => {
      if (server.listening) await cut();
    },
  };
}

/** A proxy before the server of a URL. @returns the URL that leads through it */
export async function startProxyOf(target: string): Promise<{ proxy: TcpProxy; url: URL }> {
  const url = new URL(target);
  const proxy = await startTcpProxy(Number(url.port));
  url.port = String(proxy.port);
  return { proxy, url };
}
