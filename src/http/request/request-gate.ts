import type { FastifyInstance, FastifyRequest } from 'fastify';
import type { Env } from '../../config/env.js';
import { Problem } from '../problem/problem.js';

/** Decides by its headers alone whether a request may go on. */
export abstract class RequestGate {
  /** @throws {Problem} 401, 403 or 503 when it may not */
  abstract admit(request: FastifyRequest): Promise<void> | void;
}

/** Asks the gate before anything of a body is read. Call it after other hooks that judge headers. */
export function installRequestGate(fastify: FastifyInstance, gate: RequestGate): void {
  fastify.addHook('onRequest', async (request) => {
    if (!request.is404) await gate.admit(request);
  });
}

const OPERATIONS = /^\/(health\/|metrics$)/;

/** Leaves a process without the role api nothing but the routes of operations. Call it before other hooks. */
export function installRoleGate(fastify: FastifyInstance, env: Env): void {
  if (env.hasRole('api')) return;
  fastify.addHook('onRequest', (request, _reply, done) => {
    if (OPERATIONS.test(request.routeOptions.url ?? '')) return done();
    done(new Problem(404, 'not-found', 'This process has no API, for its ROLES lack api; ask one that has it.'));
  });
}

/** Answers a wrong method on a path that there is with 405 and Allow (RFC 9110 §15.5.6). Call it before routes exist. */
export function installWrongMethod(fastify: FastifyInstance): void {
  const routes: { segments: string[]; methods: string[] }[] = [];
  fastify.addHook('onRoute', ({ url, method }) => {
    routes.push({ segments: url.split('/'), methods: [method].flat() });
  });
  fastify.addHook('onRequest', (request, _reply, done) => {
    if (!request.is404) return done();
    const [path = ''] = request.url.split('?', 1);
    const asked = path.split('/');
    const methods = routes.filter(({ segments }) => fits(segments, asked)).flatMap((route) => route.methods);
    if (methods.length === 0) return done();
    const allow = [...new Set(methods)].sort().join(', ');
    const detail = `This path takes ${allow}; /openapi.json says what each does.`;
    done(new Problem(405, 'method-not-allowed', detail, { headers: { allow } }));
  });
}

/** Whether a path fits a route's pattern: `:name` is one segment, `*` is whatever is left. */
function fits(pattern: readonly string[], path: readonly string[]): boolean {
  const star = pattern.indexOf('*');
  if (star < 0 ? path.length !== pattern.length : path.length <= star) return false;
  return pattern
    .slice(0, star < 0 ? undefined : star)
    .every((segment, at) => (segment.startsWith(':') ? path[at] !== '' : segment === path[at]));
}
