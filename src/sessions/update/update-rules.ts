import { UUID } from '../../http/request/uuid-param.js';
import type { UpdateTherapySessionRequest } from '../../platform/contract/wire-types.js';
import type { InputKind } from '../create/create-request.js';
import { requestFault } from '../create/create-rules.js';
import type { UpdateSessionRequest } from './update-session.dto.js';

/** Spec, Transcript: "Speaker label: letters starting at 'A'". */
const SPEAKER_LABEL = /^[A-Z]+$/;

/**
 * What an update sends: omitted, null and blank fields are left out, for they change nothing (spec, Update an existing
 * session). Pure.
 *
 * @param kind of the session's input; undefined when it is not known here, which leaves the judgement to the platform
 * @throws {Problem} 400 `validation`: nothing is left, a malformed speaker mapping, or a field that does not apply to
 *   the kind of input, as the spec corrects its table: a speaker mapping is for recordings, an input text for texts
 */
export function updateRequest(dto: UpdateSessionRequest, kind: InputKind | undefined): UpdateTherapySessionRequest {
  const { noteTemplateIds, externalTreatmentPlan } = dto;
  const speakerMapping = readSpeakerMapping(dto.speakerMapping ?? {});
  const text = dto.input?.text;
  const update: UpdateTherapySessionRequest = {
    ...(noteTemplateIds && noteTemplateIds.length > 0 && { noteTemplateIds }),
    ...(externalTreatmentPlan?.trim() && { externalTreatmentPlan }),
    ...(Object.keys(speakerMapping).length > 0 && { speakerMapping }),
    ...(text?.trim() && { input: { text } }),
  };
  if (Object.keys(update).length === 0) {
    const fields = 'noteTemplateIds, externalTreatmentPlan, speakerMapping and input';
    throw requestFault('', `at least one of ${fields} must hold something`);
  }
  if (update.speakerMapping && kind === 'text') {
    throw requestFault('/speakerMapping', 'does not apply to a session that was made from a text');
  }
  if (update.input && kind === 'recording') {
    throw requestFault('/input', 'does not apply to a session that was made from a recording');
  }
  return update;
}

function readSpeakerMapping(mapping: Record<string, unknown>): Record<string, string> {
  for (const [label, user] of Object.entries(mapping)) {
    if (!SPEAKER_LABEL.test(label)) throw requestFault('/speakerMapping', 'must have labels such as A as its names');
    if (typeof user !== 'string' || !UUID.test(user)) {
      throw requestFault(`/speakerMapping/${label}`, 'must be the UUID of a user of the platform');
    }
  }
  return mapping as Record<string, string>;
}
