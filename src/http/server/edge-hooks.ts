import { setMaxListeners } from 'node:events';
import type { IncomingMessage, ServerResponse } from 'node:http';
import { Logger } from '@nestjs/common';
import type { OpenAPIObject } from '@nestjs/swagger';
import type { FastifyInstance, FastifyRequest } from 'fastify';
import type { Clock } from '../../config/clock.js';
import type { Env } from '../../config/env.js';
import type { Stopping } from '../../config/stopping.js';
import { installSpanNames } from '../../tracing/span-names.js';
import type { BodyMemory } from '../body/body-memory.js';
import { installBodyPolicy } from '../body/body-policy.js';
import { BROWSER_HEADERS } from '../problem/browser-headers.js';
import { Problem } from '../problem/problem.js';
import { sourceNetwork } from '../request/source-address.js';
import { whenOver } from '../request/when-over.js';
import { AnswerCounts } from './answer-counts.js';
import { boundConnections } from './connections.js';
import { Metrics } from './metrics.js';
import { MinuteCounts } from './minute-counts.js';
import { isWaiting, RequestsInFlight } from './requests-in-flight.js';

/** Decides by its headers whether a request may continue. */
export abstract class RequestGate {
  /** @throws {Problem} 401, 403 or 503 if it may not */
  abstract admit(request: FastifyRequest): Promise<void>;

  /** The id of an admitted request's caller; undefined if it needs none. */
  abstract callerOf(request: FastifyRequest): string | undefined;

  /** Receives each error of a request before it is answered. @throws the error to answer instead */
  abstract refused(error: unknown, request: FastifyRequest): Promise<void>;

  /** Adds to each operation what its caller needs. */
  abstract describe(document: OpenAPIObject): OpenAPIObject;
}

interface EdgeParts {
  readonly clock: Clock;
  readonly metrics: Metrics;
  readonly answers: AnswerCounts;
  readonly bodies: BodyMemory;
  readonly stopping: Stopping;
  readonly gate: RequestGate;
}

/** Installs what precedes the routes; call it before they exist. The gate decides before a body is read. */
export function installEdge(fastify: FastifyInstance, env: Env, parts: EdgeParts): void {
  const { stopping, gate, bodies, clock } = parts;
  installSpanNames(fastify, env);
  boundConnections(fastify.server, env);
  installClosing(fastify, stopping);
  installBrowserHeaders(fastify);
  if (!env.hasRole('api')) installRoleGate(fastify);
  installBodyPolicy(fastify, bodies);
  installAccessLog(fastify, parts);
  installWrongMethod(fastify);
  const inFlight = new RequestsInFlight(env, clock);
  fastify.addHook('onRequest', async (request, reply) => {
    if (!request.is404) await gate.admit(request);
    // Health has its own share: a probe is answered regardless of what else its source sends.
    const source = isOfOperations(request) ? `health ${sourceNetwork(request)}` : sourceNetwork(request);
    const leave = inFlight.enter(gate.callerOf(request) ?? source, isWaiting(request));
    whenOver(reply.raw, () => leave(reply.raw.writableFinished));
  });
}

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
function installClosing(fastify: FastifyInstance, stopping: Stopping): void {
  fastify.server.prependListener('request', (_request: IncomingMessage, response: ServerResponse) => {
    if (stopping.isDraining) response.setHeader('connection', 'close');
  });
  const closing = new AbortController();
  // Every request that waits listens to it.
  setMaxListeners(0, closing.signal);
  fastify.decorate('closing', closing.signal);
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

const OPERATIONS = /^\/(health\/|metrics$)/;
const isOfOperations = ({ routeOptions }: FastifyRequest) => OPERATIONS.test(routeOptions.url ?? '');

/** Limits a process without the role api to the routes of operations. */
function installRoleGate(fastify: FastifyInstance): void {
  fastify.addHook('onRequest', (request, _reply, done) => {
    if (isOfOperations(request)) return done();
    done(
      new Problem(
        'not-found',
        'This process does not serve the API, because its ROLES lack api. Use a process that has this role.',
      ),
    );
  });
}

/** In seconds. A caller may wait for up to sixty. */
const BUCKETS = [0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60];

/** A line of the access log. */
interface LoggedRequest {
  readonly method: string;
  readonly route: string;
  readonly status: number;
}

const OTHER_REQUESTS: [string, LoggedRequest] = ['others', { method: 'any', route: 'others', status: 0 }];

/**
 * Logs and measures every response by its route *pattern*: never a URL, a query or a body. Refused requests, and those
 * without a known caller, are logged once per minute, route and status, with the number of repetitions, so that a flood of
 * them does not fill the disk. Of a hot route, only failures of the service are logged.
 */
function installAccessLog(fastify: FastifyInstance, { metrics, answers, clock, gate }: EdgeParts): void {
  const log = new Logger('Access');
  const repeated = new MinuteCounts<LoggedRequest>(clock, (request, times) =>
    log.log({ msg: 'repeated requests', ...request, times }),
  );
  const labels = ['method', 'route', 'status'] as const;
  const seconds = metrics.histogram(
    'http_request_seconds',
    'Duration of requests until the complete answer',
    labels,
    BUCKETS,
  );
  fastify.addHook('onClose', () => repeated.reportAll());
  fastify.addHook('onResponse', (request, { statusCode: status, elapsedTime }, done) => {
    const { id, method, routeOptions } = request;
    const { url: route = 'unmatched', config } = routeOptions;
    seconds.observe({ method, route, status }, elapsedTime / 1000);
    answers.count(status);
    done();
    if (config.edge?.hot && status < 500) return;
    const line = { method, route, status };
    const isCounted = status >= 400 || gate.callerOf(request) === undefined;
    if (isCounted && !repeated.isFirst([`${method} ${route} ${status}`, line], OTHER_REQUESTS)) return;
    log.log({ msg: 'request', requestId: id, ...line, ms: Math.round(elapsedTime) });
  });
}

/** Answers a wrong method on an existing path with 405 and Allow (RFC 9110 §15.5.6). */
function installWrongMethod(fastify: FastifyInstance): void {
  const routes: { segments: string[]; methods: string[] }[] = [];
  for (const instance of [fastify, fastify.unhooked]) {
    instance.addHook('onRoute', ({ url, method }) => {
      routes.push({ segments: url.split('/'), methods: [method].flat() });
    });
  }
  fastify.addHook('onRequest', (request, _reply, done) => {
    if (!request.is404) return done();
    const [path = ''] = request.url.split('?', 1);
    const asked = path.split('/');
    const methods = routes.filter(({ segments }) => fits(segments, asked)).flatMap((route) => route.methods);
    if (methods.length === 0) return done();
    const allow = [...new Set(methods)].sort().join(', ');
    const detail = `This path takes ${allow}. See /openapi.json.`;
    done(new Problem('method-not-allowed', detail, { headers: { allow } }));
  });
}

/** True if a path matches a route's pattern: `:name` is one segment, `*` is the rest. */
function fits(pattern: readonly string[], path: readonly string[]): boolean {
  const star = pattern.indexOf('*');
  if (star < 0 ? path.length !== pattern.length : path.length <= star) return false;
  return pattern
    .slice(0, star < 0 ? undefined : star)
    .every((segment, at) => (segment.startsWith(':') ? path[at] !== '' : segment === path[at]));
}

/** Sets the headers that browsers follow. `ProblemFilter` sets them on the errors of requests without hooks. */
function installBrowserHeaders(fastify: FastifyInstance): void {
  fastify.addHook('onRequest', (_request, reply, done) => {
    for (const [name, value] of BROWSER_HEADERS) reply.raw.setHeader(name, value);
    done();
  });
  fastify.addHook('onSend', (request, reply, payload, done) => {
    reply.header('request-id', request.id);
    // The plugin that serves files sets a longer lifetime.
    const { edge } = request.routeOptions.config;
    if (reply.hasHeader('cache-control') && !edge?.immutable) reply.header('cache-control', 'no-store');
    done(null, payload);
  });
}
