import rateLimit from '@fastify/rate-limit';
import type { FastifyInstance, FastifyRequest } from 'fastify';
import type { Env } from '../../config/env.js';
import { Problem } from '../problem/problem.js';
import type { CountedBy, RequestGate } from './request-gate.js';

const WINDOW_MS = 1_000;

/** Requests per second and address with a key that is not known to be valid: each costs a lookup in the database. */
const UNKNOWN_KEYS = 5;

/** Requests per second and address without a key: pages, their files, and unknown routes. */
const WITHOUT_KEY = 100;

/** Maximum keys and addresses that are counted at the same time; then the least recent one is forgotten. */
const COUNTED = 20_000;

/**
 * Limits the requests of a second, in this process. A valid key has a limit of its own, so that neither a flood from its
 * address nor another key keeps it out. Headers only choose the limit, and none lifts it.
 */
export async function installRequestLimits(
  fastify: FastifyInstance,
  { KEY_REQUESTS_PER_SECOND }: Env,
  gate: RequestGate,
): Promise<void> {
  const limits: Record<CountedBy['kind'], number> = {
    'valid-key': KEY_REQUESTS_PER_SECOND,
    'unknown-key': UNKNOWN_KEYS,
    'no-key': WITHOUT_KEY,
  };
  await fastify.register(rateLimit, {
    global: false,
    timeWindow: WINDOW_MS,
    cache: COUNTED,
    keyGenerator: (request: FastifyRequest) => {
      const { kind, id } = gate.countedBy(request);
      return `${kind} ${id}`;
    },
    max: (_request: FastifyRequest, key: string) => limits[key.split(' ', 1)[0] as CountedBy['kind']],
  });
  const count = fastify.createRateLimit();
  fastify.addHook('onRequest', async (request) => {
    if (request.routeOptions.config.edge?.unlimited) return;
    const counted = await count(request);
    if (counted.isAllowed || !counted.isExceeded) return;
    const detail = 'This caller sends too many requests. Wait as long as Retry-After says, then send this one again.';
    throw new Problem('too-many-requests', detail, { retryAfterSeconds: counted.ttl / 1_000 });
  });
}
