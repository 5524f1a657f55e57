import type { NextStepResponse } from '../../people/api/trace.dto.js';
import { type LookupPolicy, nextFetch, nextLookup, whyFailed } from './next-lookup.js';
import type { SessionRow } from './session-row.js';

/** The next action of this service for a session, and its reason. */
export function nextSessionStep(row: SessionRow, now: Date, policy: LookupPolicy, canFetch: boolean): NextStepResponse {
  const { state, dueAt: notBefore, fault } = row;
  const none = (why: string): NextStepResponse => ({ what: 'none', why, notBefore: null });
  if (state === 'Unknown') return none('the request has no answer; choose one of the choices');
  if (state === 'Rejected') return none('the platform rejected the request');
  if (state === 'Merged') return none('its session is that of another row');
  if (state === 'Requested') {
    const why = fault === null ? 'it was requested' : whyFailed(row);
    return { what: 'createSession', why, notBefore };
  }
  if (!canFetch) return none('the contract file does not say how to fetch sessions');
  const fetch = nextFetch(row, now, policy);
  return fetch ? { what: 'getSession', why: fetch.why, notBefore: fetch.at } : none(nextLookup(row, now, policy).why);
}
