import { Logger } from '@nestjs/common';
import type { FastifyInstance } from 'fastify';
import { Metrics } from './metrics.js';

/** Seconds; the platform gives a webhook five, a caller may wait sixty. */
const BUCKETS = [0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60];

/**
 * Logs and measures every answer by its route *pattern*: never a URL, a query or a body. Of a hot route only what the
 * service itself could not do is logged, so that a flood of refused requests does not fill the disk.
 */
export function installAccessLog(fastify: FastifyInstance, metrics: Metrics): void {
  const log = new Logger('Access');
  const seconds = metrics.histogram(
    'http_request_seconds',
    'Time from a request to its answer',
    ['method', 'route', 'status'],
    BUCKETS,
  );
  fastify.addHook('onResponse', (request, reply, done) => {
    const method = request.method;
    const { url: route = 'unmatched', config } = request.routeOptions;
    const status = reply.statusCode;
    seconds.observe({ method, route, status }, reply.elapsedTime / 1000);
    if (!config.edge?.hot || status >= 500) {
      log.log({ msg: 'request', method, route, status, ms: Math.round(reply.elapsedTime) });
    }
    done();
  });
}
