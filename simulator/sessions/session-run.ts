import type { SessionEventType } from '../../src/platform/contract/wire-types.js';
import type { SimulatorState } from '../state.js';
import { notesFor } from './notes.js';
import type { SimulatedSession } from './session.js';

/** Announces and starts a new session. */
export function beginRun(state: SimulatorState, session: SimulatedSession): void {
  announce(state, session, 'SESSION_CREATED', provisionalAiNotes(state, session, 'SESSION_CREATED'));
  scheduleNext(state, session);
}

/** Starts to regenerate documents; the session's state is Processing until they are ready. */
export function beginRegeneration(state: SimulatorState, session: SimulatedSession, templateIds: string[]): void {
  session.state = 'Processing';
  session.wantedTemplateIds = templateIds;
  session.nextStep = 'remake-notes';
  scheduleNext(state, session);
}

/** Takes the session's next step now; does nothing if none is left. */
export function takeStep(state: SimulatorState, session: SimulatedSession): void {
  const step = session.nextStep;
  if (step === 'start') start(state, session);
  else if (step === 'make-notes') makeNotes(state, session, 'complete');
  else if (step === 'complete') complete(state, session);
  else if (step === 'remake-notes') remakeNotes(state, session);
  if (session.nextStep) scheduleNext(state, session);
}

/** With a step time of 0, only the admin API advances sessions. A step taken manually before its time is not repeated. */
function scheduleNext(state: SimulatorState, session: SimulatedSession): void {
  const planned = session.nextStep;
  if (state.settings.stepMs === 0) return;
  state.timers.later(state.settings.stepMs, () => {
    const isCurrent = session.nextStep === planned && state.sessions.find(session.sessionId) === session;
    if (isCurrent) takeStep(state, session);
  });
}

/** Without AI notes, only the creation and the completion have events (spec, Event sequences). */
function start(state: SimulatorState, session: SimulatedSession): void {
  session.state = 'Processing';
  if (session.willFail || state.uploads.isLacking(session.input)) {
    session.nextStep = 'complete';
    session.willFail = true;
  } else {
    session.nextStep = session.aiNotes ? 'make-notes' : 'complete';
  }
  if (!session.aiNotes) return;
  announce(
    state,
    session,
    'SESSION_PROCESSING_STARTED',
    provisionalAiNotes(state, session, 'SESSION_PROCESSING_STARTED'),
  );
}

/** One event for each template, on the first run and on every later one (spec, Session events). */
function makeNotes(state: SimulatorState, session: SimulatedSession, nextStep: SimulatedSession['nextStep']): void {
  session.nextStep = nextStep;
  session.generation += 1;
  for (const noteTemplateId of session.wantedTemplateIds) {
    const before = session.documents.get(noteTemplateId)?.sessionDocumentId;
    const keepsId = before !== undefined && state.settings.documentIds === 'stable';
    const sessionDocumentId = keepsId ? before : state.random.uuid();
    session.documents.set(noteTemplateId, {
      sessionDocumentId,
      noteTemplateId,
      notes: notesFor(session, noteTemplateId),
    });
  }
  for (const _template of session.wantedTemplateIds) {
    announce(state, session, 'SESSION_PROCESSING_NOTES_COMPLETED', session.aiNotes);
  }
  if (state.settings.processingEvents) {
    state.deliveries.send({ eventType: 'PROCESSING_SESSION_NOTES_FINISHED', payload: notesPayload(state, session) });
  }
}

/** A regeneration has only the events of its notes, or of its failure (spec, Session events). */
function remakeNotes(state: SimulatorState, session: SimulatedSession): void {
  const { regenerationFailureRate } = state.settings;
  if (regenerationFailureRate > 0 && state.random.chance(regenerationFailureRate)) {
    fail(state, session);
    return;
  }
  makeNotes(state, session, null);
  session.state = 'Done';
}

function fail(state: SimulatorState, session: SimulatedSession): void {
  session.nextStep = null;
  session.state = 'Error';
  session.error = { code: 'low-content-transcript', message: 'Too little of the audio could be interpreted.' };
  announce(state, session, 'SESSION_PROCESSING_FAILED', session.aiNotes);
}

function complete(state: SimulatorState, session: SimulatedSession): void {
  if (session.willFail) {
    fail(state, session);
    return;
  }
  session.nextStep = null;
  session.state = 'Done';
  session.completed = true;
  announce(state, session, 'SESSION_PROCESSING_COMPLETED', session.aiNotes);
  if (state.settings.processingEvents) {
    const { processingId } = session;
    state.deliveries.send({ eventType: 'PROCESSING_SESSION_FINISHED', payload: { processingId } });
  }
}

/** aiNotesEnabled of the first events, which may still change (spec, aiNotesEnabled rules). */
function provisionalAiNotes(
  state: SimulatorState,
  session: SimulatedSession,
  eventType: 'SESSION_CREATED' | 'SESSION_PROCESSING_STARTED',
): boolean | null {
  if (state.settings.provisionalAiNotes === 'opposite') return !session.aiNotes;
  if (eventType === 'SESSION_PROCESSING_STARTED') return session.aiNotes;
  return session.input.kind === 'text' ? false : null;
}

function announce(
  state: SimulatorState,
  session: SimulatedSession,
  eventType: SessionEventType,
  aiNotesEnabled: boolean | null,
): void {
  const { sessionId, providerUserId, partnerAppointmentId } = session;
  state.deliveries.send({ eventType, sessionId, providerUserId, partnerAppointmentId, aiNotesEnabled });
}

function notesPayload(state: SimulatorState, { processingId, sessionId }: SimulatedSession): unknown {
  switch (state.settings.notesFinishedPayload) {
    case 'processingId':
      return { processingId };
    case 'sessionId':
      return { sessionId };
    case 'empty':
      return {};
    case 'absent':
      return undefined;
  }
}
