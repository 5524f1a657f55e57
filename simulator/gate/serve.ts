import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';
import { Refusal } from '../refusal.js';
import type { Settings } from '../settings.js';
import type { SimulatorState } from '../state.js';
import type { Arrival } from './arrivals.js';
import type { FaultRule } from './fault-rule.js';
import type { PlatformAnswer, PlatformCall, PlatformRoute } from './platform-route.js';

/** A request in progress. */
interface Passage {
  arrival: Arrival;
  /** The part of the latency that delays the answer, in milliseconds. */
  returnMs: number;
}

/**
 * Serves platform operations behind one gate. In this order: latency, arrival, key, limit, faults, then the handler.
 *
 * @param apiKey the only key that is accepted, as `Authorization: Bearer …` (simulator/contract.json)
 */
export function servePlatform(
  app: FastifyInstance,
  state: SimulatorState,
  apiKey: string,
  routes: readonly PlatformRoute[],
): void {
  const passages = new WeakMap<FastifyRequest, Passage>();

  app.addHook('onResponse', async (request, reply) => {
    const passage = passages.get(request);
    if (passage) passage.arrival.status ??= reply.statusCode;
  });

  for (const route of routes) {
    app.route({
      method: route.method,
      url: route.path,
      onRequest: async (request) => {
        passages.set(request, await arrive(state, route));
        if (request.headers.authorization !== `Bearer ${apiKey}`) throw new Refusal(403, 'The API key is not valid.');
        const { arrival } = passages.get(request) as Passage;
        if (route.userManagement) admit(state, arrival);
      },
      handler: async (request, reply) => {
        const { arrival, returnMs } = passages.get(request) as Passage;
        const call = callOf(request);
        const fault = state.faults.take(route.operation, factsOf(state, call));
        if (fault) return applyFault(state, fault, arrival, reply, () => route.handle(call));
        const answer = route.handle(call);
        await holdAnswer(state, returnMs);
        return send(reply, answer);
      },
    });
  }
}

async function arrive(state: SimulatorState, route: PlatformRoute): Promise<Passage> {
  const latencyMs = state.random.between(state.settings.latencyMs);
  const outwardMs = latencyMs > 0 ? latencyMs * state.random.fraction() : 0;
  await state.timers.sleep(outwardMs);
  const arrival = state.arrivals.record(state.nowMs(), route.operation, route.userManagement === true);
  return { arrival, returnMs: latencyMs - outwardMs };
}

async function holdAnswer(state: SimulatorState, ms: number): Promise<void> {
  state.heldCalls += 1;
  await state.timers.sleep(ms);
  state.heldCalls -= 1;
}

function admit(state: SimulatorState, arrival: Arrival): void {
  const { callsPerWindow, windowSeconds, retryAfter } = state.settings;
  const waitMs = state.limit.admit(arrival.at, callsPerWindow, windowSeconds * 1_000);
  arrival.accepted = waitMs === undefined;
  if (waitMs !== undefined) throw tooMany(retryAfterHeader(retryAfter, waitMs, arrival.at));
}

/**
 * The Retry-After header of a 429 in the configured form (RFC 9110, 10.2.3), rounded up so that a retry after exactly
 * this time succeeds.
 */
function retryAfterHeader(form: Settings['retryAfter'], waitMs: number, nowMs: number): Record<string, string> {
  if (form === 'absent') return {};
  if (form === 'seconds') return { 'retry-after': String(Math.max(1, Math.ceil(waitMs / 1_000))) };
  return { 'retry-after': new Date(Math.ceil((nowMs + waitMs) / 1_000) * 1_000).toUTCString() };
}

function tooMany(headers: Record<string, string>): Refusal {
  return new Refusal(429, 'Too many user-management requests.', headers);
}

async function applyFault(
  state: SimulatorState,
  fault: FaultRule,
  arrival: Arrival,
  reply: FastifyReply,
  handle: () => PlatformAnswer,
): Promise<FastifyReply> {
  switch (fault.kind) {
    case 'refuse':
      return cut(reply, arrival);
    case 'commit-then-cut':
      handle();
      return cut(reply, arrival);
    case 'commit-then-500':
      handle();
      throw new Refusal(500, 'Something went wrong.');
    case 'commit-late':
      state.timers.later(fault.ms, () => handleUnseen(handle));
      return cut(reply, arrival);
    case 'bad-json':
      handle();
      return reply.code(200).header('content-type', 'application/json').send(Buffer.from('{"userId":"'));
    case 'slow': {
      const answer = handle();
      await holdAnswer(state, fault.ms);
      return send(reply, answer);
    }
    case 'status':
      throw new Refusal(fault.status, `Injected status ${fault.status}.`);
    case 'rate-limit':
      state.limit.withdraw(arrival.at);
      arrival.accepted = false;
      throw tooMany(retryAfterHeader(fault.retryAfter, fault.retryAfterSeconds * 1_000, state.nowMs()));
    case 'forbid':
      throw new Refusal(403, 'Forbidden.');
    case 'answer':
      return send(reply, { status: 200, body: fault.body });
  }
}

/** Ignores a refusal, because the caller has been disconnected. */
function handleUnseen(handle: () => PlatformAnswer): void {
  try {
    handle();
  } catch (error) {
    if (!(error instanceof Refusal)) throw error;
  }
}

function cut(reply: FastifyReply, arrival: Arrival): FastifyReply {
  arrival.status = 'cut';
  reply.hijack();
  reply.raw.socket?.resetAndDestroy();
  return reply;
}

function send(reply: FastifyReply, answer: PlatformAnswer): FastifyReply {
  reply.code(answer.status);
  return answer.body === undefined ? reply.send() : reply.send(answer.body);
}

function callOf(request: FastifyRequest): PlatformCall {
  return {
    params: request.params as Record<string, string>,
    query: request.query as Record<string, string>,
    body: request.body,
  };
}

function factsOf(state: SimulatorState, call: PlatformCall): Record<string, unknown> {
  const user = state.users.find(call.params.userId ?? '');
  const body = typeof call.body === 'object' && call.body !== null ? call.body : {};
  return { partnerUserId: user?.partnerUserId, email: user?.email, ...body, ...call.params };
}
