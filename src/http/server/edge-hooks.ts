import { setMaxListeners } from 'node:events';
import { Logger } from '@nestjs/common';
import type { FastifyInstance } from 'fastify';
import helmet from 'helmet';
import { Metrics } from './metrics.js';

/** Seconds; the platform gives a webhook five, a caller may wait sixty. */
const BUCKETS = [0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60];

/**
 * Logs and measures every answer by its route *pattern*: never a URL, a query or a body. Of a hot route only what the
 * service itself could not do is logged, so that a flood of refused requests does not fill the disk.
 */
export function installAccessLog(fastify: FastifyInstance, metrics: Metrics): void {
  const log = new Logger('Access');
  const labels = ['method', 'route', 'status'] as const;
  const seconds = metrics.histogram('http_request_seconds', 'Time from a request to its answer', labels, BUCKETS);
  fastify.addHook('onResponse', (request, reply, done) => {
    const { method } = request;
    const { url: route = 'unmatched', config } = request.routeOptions;
    const status = reply.statusCode;
    seconds.observe({ method, route, status }, reply.elapsedTime / 1000);
    if (!config.edge?.hot || status >= 500) {
      log.log({ msg: 'request', method, route, status, ms: Math.round(reply.elapsedTime) });
    }
    done();
  });
}

/** The documentation and the console load nothing from elsewhere. */
const CONTENT_SECURITY_POLICY = {
  useDefaults: false,
  directives: {
    defaultSrc: ["'self'"],
    styleSrc: ["'self'", "'unsafe-inline'"],
    imgSrc: ["'self'", 'data:'],
    objectSrc: ["'none'"],
    baseUri: ["'none'"],
    frameAncestors: ["'none'"],
    formAction: ["'self'"],
  },
};

/**
 * Gives answers the headers that browsers heed, but for those of hot routes, which no browser calls. Most answers hold
 * personal data: no cache may keep one.
 */
export function installBrowserHeaders(fastify: FastifyInstance): void {
  const addHeaders = helmet({ contentSecurityPolicy: CONTENT_SECURITY_POLICY });
  fastify.addHook('onRequest', (request, reply, done) => {
    if (request.routeOptions.config?.edge?.hot) return done();
    reply.header('cache-control', 'no-store');
    addHeaders(request.raw, reply.raw, (error) => done(error as Error | undefined));
  });
}

/** Milliseconds that requests under way get to end by themselves when the service stops. */
const GRACE_MS = 5_000;

/** Milliseconds between two closings of connections that became idle meanwhile. */
const IDLE_CHECK_MS = 50;

declare module 'fastify' {
  interface FastifyInstance {
    /** Aborted when the service begins to stop: a request that waits is answered with what there is. */
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
    const closingIdle = setInterval(() => fastify.server.closeIdleConnections(), IDLE_CHECK_MS);
    const cutting = setTimeout(() => fastify.server.closeAllConnections(), GRACE_MS);
    fastify.server.once('close', () => {
      clearInterval(closingIdle);
      clearTimeout(cutting);
    });
    for (const timer of [closingIdle, cutting]) timer.unref();
    done();
  });
}
