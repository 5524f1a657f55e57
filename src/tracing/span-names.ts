import { trace } from '@opentelemetry/api';
import type { FastifyInstance } from 'fastify';
import type { Env } from '../config/env.js';

/** Names the span of each request by its route pattern, if this process delivers spans. */
export function installSpanNames(fastify: FastifyInstance, { OTEL_EXPORTER_OTLP_ENDPOINT: endpoint }: Env): void {
  if (endpoint === undefined) return;
  fastify.addHook('onRequest', ({ method, routeOptions: { url: route } }, _reply, done) => {
    if (route !== undefined) trace.getActiveSpan()?.setAttribute('http.route', route).updateName(`${method} ${route}`);
    done();
  });
}
