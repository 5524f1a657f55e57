import { requestFault } from '../../http/body/validation.js';
import { Problem } from '../../http/problem/problem.js';
import type { ResolvedParties } from '../../people/store/resolved-parties.js';
import { COUPLE_SESSION_TYPES, type CreateTherapySessionRequest } from '../../platform/contract/wire-types.js';
import { checkPublicUrl } from '../../platform/upload/public-url.js';
import { OWN_CORRELATION } from '../model/session-row.js';
import type { CreateSessionRequest, SessionInputRequest } from './create-session.dto.js';
import { sessionDateTime } from './session-date.js';

/**
 * Validates a create request across its fields (spec, Therapy session creation request). Pure; null counts as absent.
 *
 * @param rule for recording URLs
 * @param handedOut recording URLs from the platform, which are accepted unchecked
 * @returns the problem (400 `validation`, 422 `url-not-allowed`), or undefined if the request is valid
 */
export function createFault(
  dto: CreateSessionRequest,
  rule: Parameters<typeof checkPublicUrl>[1],
  handedOut: ReadonlySet<string> = new Set(),
): Problem | undefined {
  const { client, clientPronouns, noteTemplateIds, sessionType, partnerAppointmentId, input } = dto;
  if (isGiven(client) && isGiven(clientPronouns)) {
    return requestFault('/clientPronouns', 'must not be sent together with client');
  }
  if (isGiven(noteTemplateIds) && isGiven(sessionType)) {
    return requestFault('/sessionType', 'must not be sent together with noteTemplateIds');
  }
  if (!isGiven(noteTemplateIds) && !isGiven(sessionType)) {
    return requestFault('/noteTemplateIds', 'either noteTemplateIds or sessionType is required');
  }
  if (COUPLE_SESSION_TYPES.some((couple) => couple === sessionType)) {
    return requestFault('/sessionType', 'the platform does not support Couple sessions yet');
  }
  if (isGiven(input.recording) === isGiven(input.text)) {
    return requestFault('/input', 'must hold exactly one of recording and text');
  }
  if (partnerAppointmentId?.startsWith(OWN_CORRELATION)) {
    return requestFault('/partnerAppointmentId', `must not begin with ${OWN_CORRELATION}`);
  }
  return recordingFault(input.recording?.recordingUrls ?? [], rule, handedOut);
}

function recordingFault(
  urls: readonly string[],
  rule: Parameters<typeof checkPublicUrl>[1],
  handedOut: ReadonlySet<string>,
): Problem | undefined {
  for (const [position, url] of urls.entries()) {
    if (handedOut.has(url)) continue;
    const fault = checkPublicUrl(url, rule);
    if (fault === undefined) continue;
    const pointer = `/input/recording/recordingUrls/${position}`;
    return new Problem(422, 'url-not-allowed', `The recording URL at position ${position} ${fault}.`, { pointer });
  }
  return undefined;
}

function isGiven(value: unknown): boolean {
  return value !== undefined && value !== null;
}

/**
 * Builds the platform's form of a valid create request, without null and blank fields.
 *
 * @param id of the session here. It is sent as `partnerAppointmentId` if the EHR sent none, so that an event can be matched
 *   with a request whose answer was lost
 */
export function createRequest(
  dto: CreateSessionRequest,
  { provider, client }: ResolvedParties,
  id: string,
): CreateTherapySessionRequest {
  const { clientPronouns, noteTemplateIds, sessionType, externalTreatmentPlan } = dto;
  const date = sessionDateTime(dto.date);
  const fields = {
    providerUserId: provider.platformUserId,
    ...(client && { clientUserId: client.platformUserId }),
    ...(clientPronouns && { clientPronouns }),
    input: inputOf(dto.input),
    ...(date && { date }),
    partnerAppointmentId: dto.partnerAppointmentId ?? `${OWN_CORRELATION}${id}`,
    ...(externalTreatmentPlan?.trim() && { externalTreatmentPlan }),
  };
  return sessionType ? { ...fields, sessionType } : { ...fields, noteTemplateIds: noteTemplateIds ?? [] };
}

/** The kind of a valid request's input, which determines the fields of an update (spec, Applicability). */
export function inputKind({ recording }: SessionInputRequest): 'recording' | 'text' {
  return recording ? 'recording' : 'text';
}

function inputOf({ recording, text }: SessionInputRequest): CreateTherapySessionRequest['input'] {
  if (recording) {
    const { recordingUrls, recordingContent } = recording;
    return { recording: { recordingUrls, recordingContent } };
  }
  return text ? { text: { text: text.text } } : {};
}
