import { ApiProperty, ApiPropertyOptional } from '@nestjs/swagger';
import { Transform } from 'class-transformer';
import { IsObject, IsOptional, IsString, ValidateIf } from 'class-validator';
import { requestFault } from '../../http/body/validation.js';
import { ListOf, Nested, OptionalText } from '../../http/request/fields.js';
import { isExternalId } from '../../people/rules/person-field-rules.js';
import type { PersonKey } from '../../people/rules/profile.js';
import {
  isPlatformUuid,
  TREATMENT_PLAN_MAX_LENGTH,
  type UpdateTherapySessionRequest,
} from '../../platform/contract/wire-types.js';
import { EXAMPLE_TEMPLATE } from '../create/create-session.dto.js';

/** A speaker in OpenAPI: the UUID of a platform user, or one id of the EHR. */
const SPEAKER = {
  oneOf: [
    { type: 'string', format: 'uuid' },
    ...['provider', 'client'].map((kind) => ({
      type: 'object',
      properties: { [kind]: { type: 'string', description: 'External id' } },
      required: [kind],
      additionalProperties: false,
    })),
  ],
};

const TEMPLATES = 'UUIDs of note templates';

export class UpdateInputRequest {
  /** The provider's text notes of the session */
  @ValidateIf((_, value) => value !== null)
  @IsString({ message: 'is required and must be a text' })
  text!: string | null;
}

const absentIfBlank = (value: unknown) => (typeof value === 'string' && value.trim() === '' ? null : value);

/** A blank text counts as absent in any field (spec, Update an existing session). */
const BlankIsAbsent = Transform(({ value }) => absentIfBlank(value));

/** The same, read from the body itself: class-transformer drops members of a map such as `toString`. */
const BlankMapIsAbsent = Transform(({ obj, key }) => absentIfBlank(obj[key]));

/** `PATCH /v1/sessions/{id}` (spec, Update an existing session): absent, null and blank fields stay unchanged. */
export class UpdateSessionRequest {
  /** To add or to reprocess */
  @ApiPropertyOptional({ type: [String], format: 'uuid', nullable: true })
  @BlankIsAbsent
  @IsOptional()
  @ListOf(TEMPLATES, isPlatformUuid, 0)
  noteTemplateIds?: string[] | null;

  /** Markdown */
  @BlankIsAbsent
  @OptionalText(TREATMENT_PLAN_MAX_LENGTH)
  externalTreatmentPlan?: string | null;

  /**
   * The person of each speaker label, by the EHR's id or by the platform's user UUID; recording sessions only
   *
   * @example {"A": {"provider": "p-1"}, "B": {"client": "c-1"}, "C": "6f1c2a34-5b6d-4e7f-8a9b-0c1d2e3f4a5b"}
   */
  @ApiPropertyOptional({ type: 'object', additionalProperties: SPEAKER, nullable: true })
  @BlankMapIsAbsent
  @IsOptional()
  @IsObject({ message: 'must be a map from speaker labels to people' })
  speakerMapping?: Record<string, unknown> | null;

  /** Text-to-note sessions only */
  @BlankIsAbsent
  @IsOptional()
  @Nested(() => UpdateInputRequest)
  input?: UpdateInputRequest | null;
}

/** `PUT /v1/sessions/{id}/note-templates` (spec, Update session note templates). */
export class NoteTemplatesRequest {
  /** To add or to reprocess */
  @ApiProperty({ type: [String], format: 'uuid', minItems: 1 })
  @ListOf(TEMPLATES, isPlatformUuid)
  noteTemplateIds!: string[];
}

/** Bodies of `PATCH /v1/sessions/{id}`. */
export const UPDATE_EXAMPLES: Record<string, { summary: string; value: UpdateSessionRequest }> = {
  text: {
    summary: 'For a session from a text',
    value: { input: { text: 'Slept better, and went for walks.' }, noteTemplateIds: [EXAMPLE_TEMPLATE] },
  },
  recording: {
    summary: 'For a session from recordings',
    value: {
      speakerMapping: { A: { provider: 'p-1' }, B: '6f1c2a34-5b6d-4e7f-8a9b-0c1d2e3f4a5b' },
      externalTreatmentPlan: '# Goals\n\nSleep through the night.',
    },
  },
};

/** Spec, Transcript: "Speaker label: letters starting at 'A'". */
const SPEAKER_LABEL = /^[A-Z]+$/;

/** The UUID of a platform user, or a person of the EHR. */
export type Speaker = string | PersonKey;

/** Reads a speaker mapping. Pure. @throws {Problem} 400 `validation` */
export function readSpeakers(mapping: UpdateSessionRequest['speakerMapping']): [label: string, speaker: Speaker][] {
  return Object.entries(mapping ?? {}).map(([label, named]) => {
    if (!SPEAKER_LABEL.test(label)) throw requestFault('/speakerMapping', 'must have speaker labels such as A as keys');
    const speaker = speakerOf(named);
    if (speaker !== undefined) return [label, speaker];
    const detail =
      'must be the UUID of a platform user, or an id of the EHR such as {"provider": "p-1"} or {"client": "c-1"}';
    throw requestFault(`/speakerMapping/${label}`, detail);
  });
}

function speakerOf(named: unknown): Speaker | undefined {
  if (typeof named === 'string') return isPlatformUuid(named) ? named : undefined;
  const [[kind, externalId] = [], ...more] = Object.entries(named ?? {});
  const isPerson = (kind === 'provider' || kind === 'client') && isExternalId(externalId) && more.length === 0;
  return isPerson ? { kind, externalId } : undefined;
}

/**
 * Builds the body of an update, without omitted, null and blank fields, which change nothing (spec, Update an existing
 * session). Pure.
 *
 * @param speakerMapping the platform users of the speakers by their labels
 * @param kind of the session's input, `recording` or `text`; if undefined, the platform checks which fields apply
 * @throws {Problem} 400 `validation`: no field left, or a field that does not apply to the kind of input (the spec's table
 *   as corrected: a speaker mapping is for recordings, an input text for texts)
 */
export function updateRequest(
  dto: UpdateSessionRequest,
  speakerMapping: Record<string, string>,
  kind: string | undefined,
): UpdateTherapySessionRequest {
  const { noteTemplateIds, externalTreatmentPlan } = dto;
  const text = dto.input?.text;
  const update: UpdateTherapySessionRequest = {
    ...(noteTemplateIds && noteTemplateIds.length > 0 && { noteTemplateIds }),
    ...(externalTreatmentPlan?.trim() && { externalTreatmentPlan }),
    ...(Object.keys(speakerMapping).length > 0 && { speakerMapping }),
    ...(text?.trim() && { input: { text } }),
  };
  if (Object.keys(update).length === 0) {
    const fields = 'noteTemplateIds, externalTreatmentPlan, speakerMapping and input';
    throw requestFault('', `at least one of ${fields} must not be blank`);
  }
  const other = kind === 'text' ? 'speakerMapping' : 'input';
  if (kind && update[other]) throw requestFault(`/${other}`, `does not apply to a session from a ${kind}`);
  return update;
}
