import { setMaxListeners } from 'node:events';
import type { FastifyInstance } from 'fastify';

/** Milliseconds that requests under way get to end by themselves when the service stops. */
const GRACE_MS = 5_000;

/** Milliseconds between two looks for connections that became idle meanwhile. */
const LOOK_MS = 50;

declare module 'fastify' {
  interface FastifyInstance {
    /** Aborted when the service begins to stop: whoever waits for something answers with what there is. */
    closing: AbortSignal;
  }
}

/** Lets requests under way end when the service stops, ends those that only wait, and cuts the rest after a grace. */
export function installClosing(fastify: FastifyInstance): void {
  const closing = new AbortController();
  // Every request that waits listens to it.
  setMaxListeners(0, closing.signal);
  fastify.decorate('closing', closing.signal);
  fastify.addHook('preClose', (done) => {
    closing.abort();
    const looking = setInterval(() => fastify.server.closeIdleConnections(), LOOK_MS);
    const cutting = setTimeout(() => fastify.server.closeAllConnections(), GRACE_MS);
    fastify.server.once('close', () => {
      clearInterval(looking);
      clearTimeout(cutting);
    });
    for (const timer of [looking, cutting]) timer.unref();
    done();
  });
}
