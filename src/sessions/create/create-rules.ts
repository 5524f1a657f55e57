import { requestFault } from '../../http/body/validation.js';
import { Problem } from '../../http/problem/problem.js';
import type { ResolvedParties } from '../../people/store/resolved-parties.js';
import { COUPLE_SESSION_TYPES, type CreateTherapySessionRequest } from '../../platform/contract/wire-types.js';
import { checkPublicUrl } from '../../platform/upload/public-url.js';
import { OWN_CORRELATION } from '../model/session-row.js';
import type { CreateSessionRequest, SessionInputRequest } from './create-session.dto.js';

/**
 * Judges what fields of a create request mean together (spec, Therapy session creation request). Pure; null is absent.
 *
 * @param rule which recording URLs may be handed in
 * @param handedOut recording URLs that the platform gave, which are taken as they are
 * @returns the refusal (400 `validation`, 422 `url-not-allowed`), or undefined when the request may be sent
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
 * The platform's form of a create request that was found acceptable. What is null or blank is left out.
 *
 * @param id ours. It is sent as `partnerAppointmentId` where the EHR has none, so that the platform's events can be told
 *   to belong to a request whose answer was lost
 */
export function createRequest(
  dto: CreateSessionRequest,
  { provider, client }: ResolvedParties,
  id: string,
): CreateTherapySessionRequest {
  const { clientPronouns, noteTemplateIds, sessionType, date, externalTreatmentPlan } = dto;
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

/** The kind of an acceptable request's input, which decides on the fields of an update (spec, Applicability). */
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
