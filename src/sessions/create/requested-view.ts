import type { CreateTherapySessionRequest } from '../../platform/contract/wire-types.js';
import type { SessionResponse } from '../read/session-view.js';
import type { CreateSessionRequest } from './create-session.dto.js';

/**
 * Shows a request for a session as it was committed, where the row that shows it can't be read.
 *
 * @param id ours
 * @param body what is sent; undefined when an earlier run of the same request committed it
 */
export function requestedView(
  id: string,
  dto: CreateSessionRequest,
  body: CreateTherapySessionRequest | undefined,
  now: Date,
): SessionResponse {
  return {
    id,
    sessionId: null,
    partnerAppointmentId: dto.partnerAppointmentId ?? null,
    provider: dto.provider,
    clients: dto.client ? [dto.client] : [],
    providerUserId: body?.providerUserId ?? null,
    clientUserIds: body?.clientUserId === undefined ? [] : [body.clientUserId],
    noteTemplateIds: dto.noteTemplateIds ?? [],
    state: 'Requested',
    stateFrom: null,
    aiNotesEnabled: null,
    aiNotesFinal: false,
    error: null,
    date: dto.date ?? null,
    sessionCreatedAt: null,
    recordingDurationMs: null,
    sessionDurationMs: null,
    notesRevision: 0,
    lastEventAt: null,
    fetchedAt: null,
    goneAt: null,
    updatedAt: now,
  };
}
