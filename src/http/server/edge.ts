import helmet from '@fastify/helmet';
import type { FastifyInstance, FastifyRequest } from 'fastify';
import type { Clock } from '../../config/clock.js';
import type { Env } from '../../config/env.js';
import type { Stopping } from '../../config/stopping.js';
import type { Metrics } from '../../monitoring/metrics.js';
import { installSpanNames } from '../../tracing/span-names.js';
import { installBodyPolicy, installBodyTimeout } from '../body/body-policy.js';
import { Problem } from '../problem/problem.js';
import { installAccessLog } from './access-log.js';
import { installClosing } from './closing.js';
import type { RequestGate } from './request-gate.js';
import { installRequestLimits } from './request-limits.js';

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
 * Installs what precedes the routes, in the order in which a request passes it; call it before they exist. Limits and the
 * gate decide by the headers, before a body is read.
 */
export async function installEdge(
  fastify: FastifyInstance,
  env: Env,
  { clock, metrics, stopping, gate }: { clock: Clock; metrics: Metrics; stopping: Stopping; gate: RequestGate },
): Promise<void> {
  installSpanNames(fastify, env);
  fastify.server.maxConnections = env.MAX_CONNECTIONS;
  const dropped = metrics.counter('http_connections_dropped_total', 'Connections closed because of MAX_CONNECTIONS');
  fastify.server.on('drop', () => dropped.inc());
  installClosing(fastify, stopping);
  await fastify.register(helmet, { contentSecurityPolicy: CONTENT_SECURITY_POLICY });
  installAnswerHeaders(fastify);
  installAccessLog(fastify, metrics, (request) => request.principal !== undefined);
  installBodyTimeout(fastify, env, clock);
  if (!env.hasRole('api')) installRoleGate(fastify);
  await installRequestLimits(fastify, env, gate);
  fastify.addHook('onRequest', async (request) => {
    if (!request.is404) await gate.admit(request);
  });
  installBodyPolicy(fastify, env);
}

/** Forbids caches to keep answers, since most hold personal data, and names the request of each. */
function installAnswerHeaders(fastify: FastifyInstance): void {
  fastify.addHook('onSend', (request, reply, payload, done) => {
    reply.header('request-id', request.id);
    if (!request.routeOptions.config.edge?.immutable) reply.header('cache-control', 'no-store');
    done(null, payload);
  });
}

const OPERATIONS = /^\/(health\/|metrics$)/;
const isOfOperations = ({ routeOptions }: FastifyRequest) => OPERATIONS.test(routeOptions.url ?? '');

/** Limits a process without the role api to the routes of operations. */
function installRoleGate(fastify: FastifyInstance): void {
  const detail = 'This process does not serve the API, because its ROLES lack api. Use a process that has this role.';
  fastify.addHook('onRequest', (request, _reply, done) => {
    done(isOfOperations(request) ? undefined : new Problem('not-found', detail));
  });
}
