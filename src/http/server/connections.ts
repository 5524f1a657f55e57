import type { IncomingMessage, Server, ServerResponse } from 'node:http';
import type { Socket } from 'node:net';
import type { Env } from '../../config/env.js';

type Limits = Pick<Env, 'MAX_CONNECTIONS' | 'SILENCE_TIMEOUT_SECONDS'>;

/** What a connection carries now. */
interface Exchange {
  request: IncomingMessage;
  response: ServerResponse;
}

/**
 * Bounds the connections of a server. When there are too many, the one that has carried no request for the longest time
 * gives way: who opens connections and says nothing keeps nobody out. A connection whose other side is silent in the
 * middle of a request or of its answer is cut.
 */
export function boundConnections(server: Server, limits: Limits): void {
  const silenceMs = limits.SILENCE_TIMEOUT_SECONDS * 1_000;
  const open = new Set<Socket>();
  /** Without a request, those that have been so the longest first. */
  const idle = new Set<Socket>();
  const exchanges = new WeakMap<Socket, Exchange>();
  server.maxConnections = limits.MAX_CONNECTIONS;
  server.on('connection', (socket) => {
    open.add(socket);
    idle.add(socket);
    socket.once('close', () => {
      open.delete(socket);
      idle.delete(socket);
    });
    const [oldest] = idle;
    // The last place is kept free: a connection that finds none is closed before anybody sees it.
    if (open.size >= limits.MAX_CONNECTIONS && oldest !== socket) oldest?.destroy();
  });
  server.prependListener('request', (request: IncomingMessage, response: ServerResponse) => {
    const { socket } = request;
    idle.delete(socket);
    exchanges.set(socket, { request, response });
    response.once('close', () => {
      if (open.has(socket)) idle.add(socket);
    });
  });
  server.setTimeout(silenceMs, (socket: Socket) => {
    if (isOtherSideSilent(exchanges.get(socket))) socket.destroy();
    else socket.setTimeout(silenceMs);
  });
}

/** Whether it is the other side that a connection without a byte in either direction waits for. */
function isOtherSideSilent(exchange: Exchange | undefined): boolean {
  if (!exchange || exchange.response.closed) return true;
  const { request, response } = exchange;
  if (response.writableLength > 0) return true;
  // What has arrived and lies unread is this side's turn.
  return !request.complete && request.readableLength === 0;
}
