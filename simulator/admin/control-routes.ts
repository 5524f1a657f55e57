import type { FastifyInstance } from 'fastify';
import { objectOf } from '../body-fields.js';
import { readFaultRule } from '../gate/fault-rule.js';
import { invalid } from '../refusal.js';
import { changedSettings } from '../settings.js';
import type { SimulatorState } from '../state.js';

/** Faults, settings, statistics and reset, for tests. */
export function controlRoutes(app: FastifyInstance, state: SimulatorState): void {
  app.get('/faults', async () => ({ rules: state.faults.list() }));
  app.post('/faults', async (request, reply) => {
    const ordered = Array.isArray(request.body) ? request.body : [request.body];
    state.faults.order(ordered.map(readFaultRule));
    return reply.code(201).send({ rules: state.faults.list() });
  });
  app.delete('/faults', async (_request, reply) => {
    state.faults.clear();
    return reply.code(204).send();
  });

  app.get('/settings', async () => state.settings);
  app.patch('/settings', async (request) => {
    state.settings = changedSettings(state.settings, request.body);
    return state.settings;
  });

  app.get<{ Querystring: { arrivals?: string } }>('/stats', async (request) => {
    const stats = state.arrivals.stats(state.settings.windowSeconds);
    return request.query.arrivals === 'true' ? { ...stats, arrivals: state.arrivals.list() } : stats;
  });

  app.post('/reset', async (request, reply) => {
    const { seed } = objectOf(request.body ?? {});
    if (seed !== undefined && typeof seed !== 'number') throw invalid('seed must be a number.');
    state.reset(seed);
    return reply.code(204).send();
  });
}
