import type { ServerResponse } from 'node:http';
import type { Socket } from 'node:net';

/** The work to do when a connection closes, by connection. */
const waiting = new WeakMap<Socket, Set<() => void>>();

/**
 * Runs `work` once a response has ended or its connection closes. A response that waits behind another one of the same
 * connection does not emit `close` when the connection does.
 */
export function whenOver(response: ServerResponse, work: () => void): void {
  const { socket } = response.req;
  if (socket.destroyed) {
    work();
    return;
  }
  let works = waiting.get(socket);
  if (!works) {
    const all = new Set<() => void>();
    works = all;
    waiting.set(socket, all);
    socket.once('close', () => {
      for (const each of all) each();
    });
  }
  const once = () => {
    if (works.delete(once)) work();
  };
  works.add(once);
  response.once('close', once);
}
