import type { SessionAnswer } from '../../platform/contract/session-answer.js';
import type { SessionEvent, SessionEventType } from '../../platform/contract/wire-types.js';
import type { Heard } from './apply-event.js';
import type { LookupPolicy } from './next-lookup.js';
import type { SessionRow } from './session-row.js';

export const NOW = new Date('2026-11-21T05:00:00Z');

export const SECOND = 1_000;
export const MINUTE = 60 * SECOND;
export const HOUR = 60 * MINUTE;
export const DAY = 24 * HOUR;

export const at = (ms: number): Date => new Date(NOW.getTime() + ms);

export const POLICY: LookupPolicy = { afterMs: 15 * MINUTE, everyMs: 10 * MINUTE };

/** The row of a session of the platform about which nothing is known yet. */
export function session(fields: Partial<SessionRow> = {}): SessionRow {
  return {
    ...{ id: '0b6e3a52-6f3f-4c0e-9d3b-7a1d6f0e2c11', sessionId: 's-1', aliasOf: null },
    ...{ state: 'Processing', stateFrom: 'events', providerUserId: null, clientUserIds: [], everClientUserIds: [] },
    ...{ noteTemplateIds: [], partnerAppointmentId: null, facts: null, notesRevision: 0 },
    ...{ request: null, correlationId: null, inputKind: null, requestedAt: null, attemptedAt: null, settledAt: null },
    ...{ abandoned: false, eventState: null, eventAppointmentId: null, aiNotesEnabled: null, aiNotesRank: 0 },
    ...{ lastEventAt: null, publishedEnd: null, publishedCode: null, publishEndBy: null },
    ...{ changes: 0, fetchedChanges: 0, callNo: 0, notesEvents: 0, processingNotes: 0, notesFound: 0 },
    ...{ rechecks: 0, fetchedAt: null },
    ...{ incomplete: [], notFoundAt: null, fault: null, failures: 0, refusedAt: null, refusedStatus: null },
    ...{ retryAt: null, updateUntil: null, dueAt: null, urgent: true, createdAt: NOW, updatedAt: NOW },
    ...fields,
  };
}

/** The row of a session whose last answer, five seconds ago, showed a state. */
export function fetched(state: string, fields: Partial<SessionRow> = {}): SessionRow {
  const known = { state, stateFrom: 'platform', changes: 1, fetchedChanges: 1, fetchedAt: at(-5 * SECOND) };
  return session({ ...known, createdAt: at(-MINUTE), updatedAt: at(-MINUTE), ...fields });
}

/** The part of an event's type that names it among those of sessions. */
export type EventName =
  | 'CREATED'
  | 'PROCESSING_STARTED'
  | 'PROCESSING_NOTES_COMPLETED'
  | 'PROCESSING_COMPLETED'
  | 'PROCESSING_FAILED';

export function event(
  name: EventName,
  aiNotesEnabled: boolean | null = true,
  partnerAppointmentId?: string,
): SessionEvent {
  const eventType: SessionEventType = `SESSION_${name}`;
  return { eventType, sessionId: 's-1', providerUserId: 'p-1', partnerAppointmentId, aiNotesEnabled };
}

export const heard = (fields: Partial<Heard> = {}): Heard => ({
  ...{ now: NOW, since: NOW, news: 1, canFetch: true },
  ...fields,
});

export const answer = (fields: Partial<SessionAnswer> = {}): SessionAnswer => ({
  ...{ sessionId: 's-1', state: 'Processing', incomplete: [] },
  ...fields,
});
