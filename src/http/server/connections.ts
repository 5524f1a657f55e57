import type { IncomingMessage, Server, ServerResponse } from 'node:http';
import type { Socket } from 'node:net';
import type { Env } from '../../config/env.js';

type Limits = Pick<Env, 'MAX_CONNECTIONS' | 'SILENCE_TIMEOUT_SECONDS'>;

/**
 * Limits the connections of a server. If there are too many, the connection that has been idle longest is closed, so that
 * silent clients cannot keep others out. A connection whose other side falls silent in the middle of a request or of its
 * answer is cut.
 */
export function boundConnections(server: Server, limits: Limits): void {
  const silenceMs = limits.SILENCE_TIMEOUT_SECONDS * 1_000;
  const open = new Set<Socket>();
  /** Connections without a request, longest idle first. */
  const idle = new Set<Socket>();
  const responses = new WeakMap<Socket, ServerResponse>();
  server.maxConnections = limits.MAX_CONNECTIONS;
  server.on('connection', (socket) => {
    open.add(socket);
    idle.add(socket);
    socket.once('close', () => {
      open.delete(socket);
      idle.delete(socket);
    });
    const [oldest] = idle;
    // The last place is kept free, because Node closes a connection that finds none before it is seen here.
    if (open.size >= limits.MAX_CONNECTIONS && oldest !== socket) oldest?.destroy();
  });
  server.prependListener('request', ({ socket }: IncomingMessage, response: ServerResponse) => {
    idle.delete(socket);
    responses.set(socket, response);
    response.once('close', () => {
      if (open.has(socket)) idle.add(socket);
    });
  });
  server.setTimeout(silenceMs, (socket: Socket) => {
    if (isOtherSideSilent(responses.get(socket))) socket.destroy();
    else socket.setTimeout(silenceMs);
  });
}

/** True if a connection without traffic waits for the other side. @param response the last one on the connection */
function isOtherSideSilent(response: ServerResponse | undefined): boolean {
  if (!response || response.closed || response.writableLength > 0) return true;
  // While received bytes are unread, it is this side's turn.
  return !response.req.complete && response.req.readableLength === 0;
}
