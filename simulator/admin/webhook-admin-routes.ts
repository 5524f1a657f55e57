import type { FastifyInstance } from 'fastify';
import { isChoice } from '../body-fields.js';
import { invalid } from '../refusal.js';
import type { SimulatorState } from '../state.js';
import { LOST_DELIVERIES } from '../webhooks/delivery.js';

/** The log of deliveries, and manual events. */
export function webhookAdminRoutes(app: FastifyInstance, state: SimulatorState): void {
  app.get<{ Querystring: { state?: string; eventType?: string } }>('/deliveries', async ({ query }) => {
    const deliveries = state.deliveries
      .list()
      .filter((delivery) => query.state === undefined || delivery.state === query.state)
      .filter((delivery) => query.eventType === undefined || delivery.eventType === query.eventType);
    return { total: deliveries.length, deliveries };
  });

  app.post<{ Querystring: { state?: string } }>('/deliveries/redeliver', async ({ query }, reply) => {
    const { state: wanted = 'failed' } = query;
    if (!isChoice(wanted, LOST_DELIVERIES)) throw invalid(`state must be ${LOST_DELIVERIES.join(', ')}.`);
    if (state.settings.webhookUrl === '') throw invalid('Set webhookUrl first; it is empty.');
    return reply.code(202).send({ redelivered: state.deliveries.redeliver(wanted) });
  });

  // Any JSON is sent as it is. A JSON string is sent as plain text, so that a body need not be JSON.
  app.post('/events', async (request, reply) => {
    if (request.body === undefined) throw invalid('The body is the event to send.');
    const text = typeof request.body === 'string' ? request.body : JSON.stringify(request.body);
    return reply.code(202).send(state.deliveries.sendRaw(text));
  });
}
