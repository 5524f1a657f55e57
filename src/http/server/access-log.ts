import { Logger } from '@nestjs/common';
import type { FastifyInstance, FastifyRequest } from 'fastify';
import type { Metrics } from '../../monitoring/metrics.js';

/** In seconds. A caller may wait for up to sixty. */
const BUCKETS = [0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60];

const CLASSES = ['2xx', '3xx', '4xx', '5xx'].map((ofStatus) => ({ class: ofStatus }));

/**
 * Measures every answer, and logs those to known callers, so that strangers cannot fill the disk. By the route *pattern*:
 * never a URL, a query or a body. Of a hot route, only failures of the service are logged.
 */
export function installAccessLog(
  fastify: FastifyInstance,
  metrics: Metrics,
  isKnown: (request: FastifyRequest) => boolean,
): void {
  const log = new Logger('Access');
  const labels = ['method', 'route', 'status'] as const;
  const help = 'Duration of requests until the complete answer';
  const seconds = metrics.histogram('http_request_seconds', help, labels, BUCKETS);
  const answers = metrics.counter('http_answers_total', 'Answers by status class', ['class'], CLASSES);
  fastify.addHook('onResponse', (request, { statusCode: status, elapsedTime }, done) => {
    const { id, method, routeOptions } = request;
    const { url: route = 'unmatched', config } = routeOptions;
    seconds.observe({ method, route, status }, elapsedTime / 1_000);
    answers.inc({ class: `${Math.floor(status / 100)}xx` });
    if (isKnown(request) && (status >= 500 || !config.edge?.hot))
      log.log({ msg: 'request', requestId: id, method, route, status, ms: Math.round(elapsedTime) });
    done();
  });
}
