import type { IncomingMessage, Server, ServerResponse } from 'node:http';
import type { Socket } from 'node:net';
import type { Env } from '../../config/env.js';

type Limits = Pick<Env, 'MAX_CONNECTIONS' | 'SILENCE_TIMEOUT_SECONDS'>;

/** The latest response of each open connection, in the order in which their latest requests began. */
type OpenConnections = Map<Socket, ServerResponse | undefined>;

/**
 * Limits the connections of a server. If there are too many, the connection that has been idle longest is closed, so that
 * silent clients cannot keep others out. A connection whose other side falls silent in the middle of a request or of its
 * answer is cut.
 */
export function boundConnections(server: Server, limits: Limits): void {
  const silenceMs = limits.SILENCE_TIMEOUT_SECONDS * 1_000;
  const open: OpenConnections = new Map();
  server.maxConnections = limits.MAX_CONNECTIONS;
  server.on('connection', (socket) => {
    // The last place is kept free, because Node closes a connection that finds none before it is seen here.
    if (open.size + 1 >= limits.MAX_CONNECTIONS) longestIdle(open)?.destroy();
    open.set(socket, undefined);
    socket.once('close', () => open.delete(socket));
  });
  // Runs for each request: a listener for the end of each response would cost more than the search when it is full.
  server.prependListener('request', ({ socket }: IncomingMessage, response: ServerResponse) => {
    if (open.delete(socket)) open.set(socket, response);
  });
  server.setTimeout(silenceMs, (socket: Socket) => {
    if (isOtherSideSilent(open.get(socket))) socket.destroy();
    else socket.setTimeout(silenceMs);
  });
}

/** The connection without a request whose latest one began first. */
function longestIdle(open: OpenConnections): Socket | undefined {
  for (const [socket, response] of open) if (!response || response.closed) return socket;
  return undefined;
}

/** True if a connection without traffic waits for the other side. @param response the last one on the connection */
function isOtherSideSilent(response: ServerResponse | undefined): boolean {
  if (!response || response.closed || response.writableLength > 0) return true;
  // While received bytes are unread, it is this side's turn.
  return !response.req.complete && response.req.readableLength === 0;
}
