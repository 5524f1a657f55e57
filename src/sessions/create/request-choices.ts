import type { RequestAction } from './create-session.dto.js';
import type { RequestCandidateResponse, RequestChoiceResponse } from './request-evidence.dto.js';
import type { RequestState } from './request-row.js';

type Verdict = RequestCandidateResponse['verdict'];

/** What is judged of a session that events told of. */
interface Candidate {
  providerUserId: string | null;
  knownSince: Date;
  /** Another request's. */
  isHeld: boolean;
}

/** Why a session is, or is not, evidence for a request; as `SessionRequestsRepository.recordEvidence` judges. */
export const VERDICTS: Record<Verdict, string> = {
  fits: 'It names this appointment and provider, and was first heard of after the request: it may be this one.',
  'other-provider': 'It names this appointment, but another provider.',
  'known-before': 'It names this appointment, but was known before the request was made.',
  held: 'It is what another request asked for.',
};

/** Whether a session that names the appointment may be the one that a request made. Pure. */
export function verdictOf(candidate: Candidate, request: { providerUserId: string; requestedAt: Date }): Verdict {
  if (candidate.isHeld) return 'held';
  if (candidate.providerUserId !== request.providerUserId) return 'other-provider';
  return candidate.knownSince < request.requestedAt ? 'known-before' : 'fits';
}

/** Why an unknown outcome is not settled by itself. Pure. @param fitting sessions that may be the request's */
export function whyUnknown(fitting: number, earlierUnknown: boolean): string {
  if (fitting === 0) return 'No event has named a session of this appointment and provider since it was asked for.';
  if (fitting > 1) return 'Events named several sessions that fit; which of them it is can not be told from here.';
  return earlierUnknown
    ? 'One session fits, but it may be what an earlier attempt made.'
    : 'One session fits; it is linked as soon as an event names it again, or by hand.';
}

const DOES: Record<RequestAction, string> = {
  link: 'Takes the session of the platform that is named for this request; its notes are fetched, and nothing is sent.',
  create: 'Sends the request once more. If the platform has made the session after all, there will be two.',
  abandon: 'Sends nothing more. The session counts as rejected, code abandoned, and the EHR may ask for it anew.',
};

/** How a request may be resolved; none where it has ended or is on its way. Pure. @param isUnderWay an attempt is */
export function requestChoices(state: RequestState, isUnderWay: boolean): RequestChoiceResponse[] {
  const actions: RequestAction[] =
    state === 'Unknown' ? ['link', 'create', 'abandon'] : state === 'Requested' && !isUnderWay ? ['abandon'] : [];
  return actions.map((action) => ({ action, does: DOES[action] }));
}
