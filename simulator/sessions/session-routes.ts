import type { Session } from '../../src/platform/contract/session-answer.js';
import { objectOf } from '../body-fields.js';
import type { PlatformAnswer, PlatformCall, PlatformRoute } from '../gate/platform-route.js';
import { notFound } from '../refusal.js';
import type { SimulatorState } from '../state.js';
import { OPTIONAL_FIELDS, without } from './optional-fields.js';
import { readCreate, requireTemplateIds } from './read-create.js';
import { readUpdate } from './read-update.js';
import type { NewSession, SimulatedSession } from './session.js';
import { beginRun } from './session-run.js';
import { applyUpdate } from './session-update.js';
import { viewOf } from './session-view.js';

/** Sessions. Paths that the spec does not show are in simulator/contract.json. */
export function sessionRoutes(state: SimulatorState): PlatformRoute[] {
  const update = (path: string): PlatformRoute => ({
    operation: 'updateSession',
    method: 'PATCH',
    path,
    handle: (call) => {
      const session = sessionOf(state, call);
      applyUpdate(state, session, readUpdate(call.body, session.input.kind));
      return updateAnswer(state, session);
    },
  });
  return [
    {
      operation: 'createSession',
      method: 'POST',
      path: '/api/v2/therapy-session',
      handle: (call) => {
        const session = createSession(state, readCreate(call.body, state.users, new Date(state.nowMs())));
        const body = { sessionId: session.sessionId };
        return { status: 201, body };
      },
    },
    {
      operation: 'getSession',
      method: 'GET',
      path: '/api/v2/therapy-session/:sessionId',
      handle: (call) => {
        const session = sessionOf(state, call);
        session.lookUps += 1;
        if (session.lookUps <= state.settings.hiddenLookUps) throw notFound('Session');
        return answer(state, session);
      },
    },
    update('/api/v2/therapy-session/:sessionId'),
    update('/therapy-session/:sessionId'),
    {
      operation: 'updateSessionTemplates',
      method: 'PUT',
      path: '/api/v1/therapy-session/:sessionId/note-templates',
      handle: (call) => {
        const session = sessionOf(state, call);
        applyUpdate(state, session, { noteTemplateIds: requireTemplateIds(objectOf(call.body)) });
        return updateAnswer(state, session);
      },
    },
    {
      operation: 'getProcessingSession',
      method: 'GET',
      path: '/api/v1/processing/:processingId',
      handle: (call) => {
        const session = state.sessions.findByProcessing(call.params.processingId ?? '');
        if (!session) throw notFound('Processing session');
        session.processingLookUps += 1;
        if (session.processingLookUps <= state.settings.hiddenLookUps) throw notFound('Processing session');
        const { processingId: id, sessionId, state: reached } = session;
        const { body } = answer(state, session);
        return { status: 200, body: { processing: { id, sessionId, state: reached, session: body } } };
      },
    },
  ];
}

/** Creates and starts a session of the API, the recorder or the platform's application. */
export function createSession(state: SimulatorState, wanted: NewSession): SimulatedSession {
  const { aiNotes, sessionFailureRate } = state.settings;
  const willFail = state.random.chance(sessionFailureRate);
  const session = state.sessions.add(wanted, new Date(state.nowMs()).toISOString(), { aiNotes, willFail });
  beginRun(state, session);
  return session;
}

function sessionOf(state: SimulatorState, call: PlatformCall): SimulatedSession {
  const session = state.sessions.find(call.params.sessionId ?? '');
  if (!session) throw notFound('Session');
  return session;
}

function answer(state: SimulatorState, session: SimulatedSession): PlatformAnswer {
  const body = viewOf(session, state.uploads.readUrl(session));
  return { status: 200, body: session.state === 'Done' ? without(body, state.settings.doneLeavesOut) : body };
}

function updateAnswer(state: SimulatorState, session: SimulatedSession): PlatformAnswer {
  const whole = answer(state, session);
  const isLean = state.settings.updateAnswer === 'lean';
  return isLean ? { ...whole, body: without(whole.body as Session, OPTIONAL_FIELDS) } : whole;
}
