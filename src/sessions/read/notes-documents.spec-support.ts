import type { NoteResponse, NotesResponse, SessionResponse } from '../model/session-view.js';

export const DOCUMENT = '0f4bb8a2-6a0e-4d3b-9b53-0d5b6a6c1a01';

export function note(
  category: string,
  text: string,
  nestingLevel = 0,
  categoryName: string | null = null,
): NoteResponse {
  return { category, categoryName, text, nestingLevel };
}

/** The notes of a session with one document. */
export function notesOf(lines: NoteResponse[], more: Partial<NotesResponse['documents'][number]> = {}): NotesResponse {
  const document = {
    documentId: DOCUMENT,
    sessionDocumentId: 'd-1',
    noteTemplateId: 'soap',
    revision: 1,
    incomplete: false,
    fetchedAt: new Date('2026-03-01T10:00:00.000Z'),
    supersededAt: null,
    removedAt: null,
    notes: lines,
    ...more,
  };
  return { sessionId: 's-1', notesRevision: 1, documents: [document] };
}

export function sessionOf(more: Partial<SessionResponse> = {}): SessionResponse {
  return {
    id: '9d0b7c40-31c8-4a55-8a4e-5f3a2b1c0d9e',
    sessionId: 's-1',
    partnerAppointmentId: 'appointment-1',
    provider: 'p-1',
    clients: ['c-1'],
    providerUserId: 'u-1',
    clientUserIds: ['u-2'],
    noteTemplateIds: ['soap'],
    stateFrom: 'platform',
    correlationId: null,
    choices: [],
    lastEventAt: null,
    state: 'Done',
    aiNotesEnabled: true,
    aiNotesFinal: true,
    error: null,
    date: '2026-03-01T09:00:00Z',
    sessionCreatedAt: '2026-03-01T09:00:00Z',
    recordingDurationMs: 1000,
    sessionDurationMs: null,
    notesRevision: 1,
    incomplete: [],
    fetchedAt: new Date('2026-03-01T10:00:00.000Z'),
    goneAt: null,
    updatedAt: new Date('2026-03-01T10:00:00.000Z'),
    ...more,
  };
}
