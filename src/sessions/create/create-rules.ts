import { requestFault } from '../../http/body/validation.js';
import { Problem } from '../../http/problem/problem.js';
import type { ResolvedParties } from '../../people/store/resolved-parties.js';
import { COUPLE_SESSION_TYPES, type CreateTherapySessionRequest } from '../../platform/contract/wire-types.js';
import { checkPublicUrl } from '../../platform/upload/public-url.js';
import { isoDateTime } from '../../text/iso-date-time.js';
import { OWN_CORRELATION } from '../model/session-row.js';
import type { CreateSessionRequest, SessionInputRequest } from './create-session.dto.js';

/**
 * Validates a create request across its fields (spec, Therapy session creation request). Pure; null counts as absent.
 *
 * @param rule for recording URLs
 * @param handedOut recording URLs from the platform, which are accepted unchecked
 * @returns the problem (400 `validation`, 422 `url-not-allowed`), or undefined if the request is valid
 */
export function createFault(
  {
    client,
    clientPronouns,
    noteTemplateIds: templates,
    sessionType,
    partnerAppointmentId,
    input,
  }: CreateSessionRequest,
  rule: Parameters<typeof checkPublicUrl>[1],
  handedOut: ReadonlySet<string> = new Set(),
): Problem | undefined {
  const isCouple = COUPLE_SESSION_TYPES.some((type) => type === sessionType);
  if (client && clientPronouns) return requestFault('/clientPronouns', 'must not be sent together with client');
  if (templates && sessionType) return requestFault('/sessionType', 'must not be sent together with noteTemplateIds');
  if (!templates && !sessionType) return requestFault('/noteTemplateIds', 'is required without sessionType');
  if (isCouple) return requestFault('/sessionType', 'the platform does not support Couple sessions yet');
  if (!input.recording === !input.text) return requestFault('/input', 'must hold either recording or text');
  if (partnerAppointmentId?.startsWith(OWN_CORRELATION)) {
    return requestFault('/partnerAppointmentId', `must not begin with ${OWN_CORRELATION}`);
  }
  for (const [position, url] of (input.recording?.recordingUrls ?? []).entries()) {
    const fault = handedOut.has(url) ? undefined : checkPublicUrl(url, rule);
    const pointer = `/input/recording/recordingUrls/${position}`;
    const detail = `The recording URL at position ${position} ${fault}.`;
    if (fault !== undefined) return new Problem('url-not-allowed', detail, { pointer });
  }
  return undefined;
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
  const { recording, text } = dto.input;
  const date = isoDateTime(dto.date);
  const fields = {
    providerUserId: provider.platformUserId,
    ...(client && { clientUserId: client.platformUserId }),
    ...(clientPronouns && { clientPronouns }),
    input: { ...(recording && { recording: { ...recording } }), ...(text && { text: { ...text } }) },
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
