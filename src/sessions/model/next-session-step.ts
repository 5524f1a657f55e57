import type { NextStepResponse } from '../../people/api/trace.dto.js';
import type { SessionRow } from './session-row.js';

/** The fields of a row that determine what this service does next about a session. */
type Subject = Pick<
  SessionRow,
  'state' | 'dueAt' | 'fault' | 'failures' | 'wantedGeneration' | 'fetchedGeneration' | 'notesAwaited'
>;

/** Determines the next action of this service for a session, and its reason. */
export function nextSessionStep(row: Subject): NextStepResponse {
  const { state, dueAt: notBefore, fault } = row;
  if (state === 'Unknown')
    return { what: 'none', why: 'the request has no answer; choose one of the choices', notBefore: null };
  if (notBefore === null) return { what: 'none', why: whyNone(row), notBefore };
  if (state === 'Requested') return { what: 'createSession', why: whyAgain(row) ?? 'it was requested', notBefore };
  const why = fault === 'maybe-gone' || fault === 'gone' ? 'the platform did not find it' : whyAgain(row);
  return { what: 'getSession', why: why ?? whyFetched(row), notBefore };
}

function whyNone({ state, fault }: Subject): string {
  if (state === 'Rejected') return 'the platform rejected the request';
  if (fault !== null) return `the last fetch failed (${fault}); a new event or refresh fetches it again`;
  return 'everything announced was fetched';
}

const whyAgain = ({ failures, fault }: Subject): string | undefined =>
  failures > 0 ? `the last attempt failed (${fault ?? 'unknown cause'}), ${failures} in a row` : undefined;

function whyFetched({ wantedGeneration, fetchedGeneration, notesAwaited }: Subject): string {
  if (wantedGeneration > fetchedGeneration) return 'an event, an update or a refresh asked for it';
  if (notesAwaited > 0) return 'notes that an event announced were not in the last answer';
  return 'the session has not ended, or was changed';
}
