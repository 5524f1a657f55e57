import type { ProcessingSession, Session } from '../../generated/prisma/client.js';
import type { SessionState } from '../../platform/contract/wire-types.js';
import type { CodeOf } from '../../words/words.js';

/** A row of `sessions`; see `schema.prisma` for its columns. */
export type SessionRow = Session;

/** A row of `processing_sessions`. */
export type ProcessingRow = ProcessingSession;

/** The states that the specification or this service names. The platform may have others. */
export type ShownState = CodeOf<'sessionState'> | 'Merged';

/** The states of a request until its session has one. `Merged`: it is the session of another row, which is shown in its place. */
const OWN_STATES: Exclude<ShownState, SessionState>[] = ['Requested', 'Unknown', 'Rejected', 'Merged'];

export const isOwnState = (state: string): boolean => OWN_STATES.some((own) => own === state);

export function hasEnded(state: string | null): state is 'Done' | 'Error' {
  return state === 'Done' || state === 'Error';
}

/** The state of a session's request. */
export function requestState({
  state,
  sessionId,
  abandoned,
}: Pick<SessionRow, 'state' | 'sessionId' | 'abandoned'>): string {
  if (abandoned) return 'Abandoned';
  return sessionId === null && state !== 'Merged' ? state : 'Settled';
}

/** Prefix of generated correlation ids; an appointment id of the EHR must not start with it. */
export const OWN_CORRELATION = 'notebridge:';

/** The EHR's appointment id from the platform's; a generated one is shown as absent. */
export function shownAppointment(partnerAppointmentId: string | null | undefined): string | null {
  return partnerAppointmentId?.startsWith(OWN_CORRELATION) ? null : (partnerAppointmentId ?? null);
}
