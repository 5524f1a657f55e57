import { setMaxListeners } from 'node:events';
import type { FastifyInstance } from 'fastify';
import type { Stopping } from '../../config/stopping.js';

/** How long requests in flight may take to finish when the service stops. */
const GRACE_MS = 5_000;

/** How often connections that have become idle are closed. */
const IDLE_CHECK_MS = 50;

declare module 'fastify' {
  interface FastifyInstance {
    /** Aborted when the service begins to stop: a request that waits is answered with what there is. */
    closing: AbortSignal;
  }
}

/**
 * Lets requests in flight finish when the service stops, ends those that only wait, and cuts the rest after a grace
 * period. Once draining starts, every answer closes its connection, so that proxies keep none when the listener closes.
 */
export function installClosing(fastify: FastifyInstance, stopping: Stopping): void {
  const closing = new AbortController();
  // Every request that waits listens to it.
  setMaxListeners(0, closing.signal);
  fastify.decorate('closing', closing.signal);
  fastify.addHook('onRequest', (_request, reply, done) => {
    if (stopping.isDraining) reply.raw.setHeader('connection', 'close');
    done();
  });
  fastify.addHook('preClose', (done) => {
    closing.abort();
    const closingIdle = setInterval(() => fastify.server.closeIdleConnections(), IDLE_CHECK_MS).unref();
    const cutting = setTimeout(() => fastify.server.closeAllConnections(), GRACE_MS).unref();
    fastify.server.once('close', () => {
      clearInterval(closingIdle);
      clearTimeout(cutting);
    });
    done();
  });
}
