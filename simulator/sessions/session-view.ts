import type { Session } from '../../src/platform/contract/session-answer.js';
import { analyticsOf } from './analytics.js';
import { namedEntitiesOf, recordingDurationOf, topicsOf, transcriptOf } from './conversation.js';
import type { SimulatedSession } from './session.js';

/**
 * A session as the API returns it (spec, Session): with the transcript once it is processing, with insights once it is
 * done, and with notes as soon as they exist.
 *
 * @param recordingUrl valid for a limited time; undefined without audio
 */
export function viewOf(session: SimulatedSession, recordingUrl: string | undefined): Session {
  const begun = session.state === 'Processing' || session.state === 'Done';
  const documents = [...session.documents.values()];
  return {
    sessionId: session.sessionId,
    partnerAppointmentId: session.partnerAppointmentId,
    noteTemplateIds: session.noteTemplateIds,
    date: session.date,
    sessionCreatedAt: session.createdAt,
    providerUserId: session.providerUserId,
    clientUserIds: session.clientUserIds,
    state: session.state,
    error: session.error,
    sessionDurationMs: null,
    recordingDurationMs: begun ? (recordingDurationOf(session) ?? null) : null,
    recordingUrl,
    transcript: begun ? transcriptOf(session) : undefined,
    topics: session.completed ? topicsOf(session) : undefined,
    namedEntities: session.completed ? namedEntitiesOf() : undefined,
    notes: documents.length > 0 ? documents : undefined,
    analyticsSummary: session.completed ? analyticsOf(session) : undefined,
  };
}
