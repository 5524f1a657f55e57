import type { ResolvedParties } from '../../people/store/resolved-parties.js';
import type { CreateTherapySessionRequest } from '../../platform/contract/wire-types.js';
import type { CreateSessionRequest, SessionInputRequest } from './create-session.dto.js';

/** Of which kind a session's input is; it decides which fields of an update apply (spec, Applicability). */
export type InputKind = 'recording' | 'text';

/**
 * The platform's form of a create request that was found acceptable. What is null or blank is left out.
 *
 * @param correlation sent as `partnerAppointmentId`
 */
export function createRequest(
  dto: CreateSessionRequest,
  { provider, client }: ResolvedParties,
  correlation: string,
): CreateTherapySessionRequest {
  const { clientPronouns, noteTemplateIds, sessionType, date, externalTreatmentPlan } = dto;
  const fields = {
    providerUserId: provider.platformUserId,
    ...(client && { clientUserId: client.platformUserId }),
    ...(clientPronouns && { clientPronouns }),
    input: inputOf(dto.input),
    ...(date && { date }),
    partnerAppointmentId: correlation,
    ...(externalTreatmentPlan?.trim() && { externalTreatmentPlan }),
  };
  return sessionType ? { ...fields, sessionType } : { ...fields, noteTemplateIds: noteTemplateIds ?? [] };
}

/** The kind of an acceptable request's input, which holds exactly one. */
export function inputKind({ recording }: Pick<SessionInputRequest, 'recording'>): InputKind {
  return recording ? 'recording' : 'text';
}

function inputOf({ recording, text }: SessionInputRequest): CreateTherapySessionRequest['input'] {
  if (recording) {
    const { recordingUrls, recordingContent } = recording;
    return { recording: { recordingUrls, recordingContent } };
  }
  return text ? { text: { text: text.text } } : {};
}
