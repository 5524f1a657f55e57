import type { FastifyInstance } from 'fastify';
import type { Env } from '../../config/env.js';
import { Problem } from '../problem/problem.js';

/** What every process answers: how it is, and its metrics. */
const OPERATIONS = /^\/(health\/|metrics$)/;

/** Leaves a process without the role api nothing but the routes of operations. Call it before other hooks. */
export function installRoleGate(fastify: FastifyInstance, env: Env): void {
  if (env.hasRole('api')) return;
  fastify.addHook('onRequest', (request, _reply, done) => {
    if (OPERATIONS.test(request.routeOptions.url ?? '')) return done();
    done(new Problem(404, 'not-found', 'This process has no API, for its ROLES lack api; ask one that has it.'));
  });
}
