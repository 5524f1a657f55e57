import type { FastifyInstance } from 'fastify';
import { objectOf } from '../body-fields.js';
import { invalid, notFound } from '../refusal.js';
import { readCreate } from '../sessions/read-create.js';
import type { SimulatedSession } from '../sessions/session.js';
import { createSession } from '../sessions/session-routes.js';
import { beginRegeneration, takeStep } from '../sessions/session-run.js';
import type { SimulatorState } from '../state.js';

/** Flags of a session that the admin API can change. */
const SWITCHES = ['aiNotes', 'willFail', 'transcriptDeleted', 'editedByHand'] as const;

/** Creates and changes sessions as the platform's application does. */
export function sessionAdminRoutes(app: FastifyInstance, state: SimulatorState): void {
  type ById = { Params: { sessionId: string } };
  const sessionOf = ({ sessionId }: ById['Params']): SimulatedSession => {
    const session = state.sessions.find(sessionId);
    if (!session) throw notFound('Session');
    return session;
  };

  app.get('/sessions', async () => ({
    total: state.sessions.list().length,
    sessions: state.sessions.list().map((session) => ({ ...session, documents: [...session.documents.values()] })),
  }));

  app.post('/sessions', async (request, reply) => {
    const session = createSession(state, readCreate(request.body, state.users, new Date(state.nowMs())));
    return reply.code(201).send({ sessionId: session.sessionId, processingId: session.processingId });
  });

  app.patch<ById>('/sessions/:sessionId', async ({ params, body }) => {
    const session = sessionOf(params);
    for (const [name, value] of Object.entries(objectOf(body))) {
      const known = SWITCHES.find((candidate) => candidate === name);
      if (!known || typeof value !== 'boolean') throw invalid(`Set ${SWITCHES.join(', ')} to true or false.`);
      session[known] = value;
    }
    return { sessionId: session.sessionId, state: session.state };
  });

  app.delete<ById>('/sessions/:sessionId', async ({ params }, reply) => {
    state.sessions.remove(sessionOf(params));
    return reply.code(204).send();
  });

  app.post<ById>('/sessions/:sessionId/advance', async ({ params, body }) => {
    const session = sessionOf(params);
    const { toEnd } = objectOf(body ?? {});
    do takeStep(state, session);
    while (toEnd === true && session.nextStep);
    return { sessionId: session.sessionId, state: session.state, nextStep: session.nextStep };
  });

  app.post<ById>('/sessions/:sessionId/regenerate', async ({ params }) => {
    const session = sessionOf(params);
    if (session.state !== 'Done') throw invalid('Only a session that is done can be regenerated.');
    beginRegeneration(state, session, session.noteTemplateIds);
    return { sessionId: session.sessionId, state: session.state };
  });

  app.delete<{ Params: { sessionId: string; noteTemplateId: string } }>(
    '/sessions/:sessionId/documents/:noteTemplateId',
    async ({ params }, reply) => {
      const session = sessionOf(params);
      if (!session.documents.delete(params.noteTemplateId)) throw notFound('Document');
      return reply.code(204).send();
    },
  );
}
