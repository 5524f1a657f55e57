import { ApiProperty, ApiPropertyOptional } from '@nestjs/swagger';
import { Transform, Type } from 'class-transformer';
import {
  ArrayNotEmpty,
  IsArray,
  IsDefined,
  IsObject,
  IsOptional,
  IsString,
  Matches,
  ValidateIf,
  ValidateNested,
} from 'class-validator';
import { requestFault } from '../../http/body/validation.js';
import { UUID } from '../../http/request/uuid-param.js';
import { TREATMENT_PLAN_MAX_LENGTH, type UpdateTherapySessionRequest } from '../../platform/contract/wire-types.js';
import { EXAMPLE_TEMPLATE, MaxCharacters } from '../create/create-session.dto.js';

const TEMPLATE_IDS = { each: true, message: 'must hold UUIDs of note templates' };

export class UpdateInputRequest {
  /** The provider's text notes of the session */
  @ValidateIf((_, value) => value !== null)
  @IsString({ message: 'is required and must be a text' })
  text!: string | null;
}

/** A blank text counts as absent in any field (spec, Update an existing session). */
function BlankIsAbsent(): PropertyDecorator {
  return Transform(({ value }) => (typeof value === 'string' && value.trim() === '' ? null : value));
}

/** `PATCH /v1/sessions/{id}` (spec, Update an existing session): absent, null and blank fields stay unchanged. */
export class UpdateSessionRequest {
  /** To add or to reprocess */
  @ApiPropertyOptional({ type: [String], format: 'uuid', nullable: true })
  @BlankIsAbsent()
  @IsOptional()
  @IsArray({ message: 'must be a list of note template ids' })
  @Matches(UUID, TEMPLATE_IDS)
  noteTemplateIds?: string[] | null;

  /** Markdown */
  @ApiPropertyOptional({ type: String, nullable: true, maxLength: TREATMENT_PLAN_MAX_LENGTH })
  @BlankIsAbsent()
  @IsOptional()
  @IsString()
  @MaxCharacters(TREATMENT_PLAN_MAX_LENGTH)
  externalTreatmentPlan?: string | null;

  /**
   * Speaker label to the platform's user UUID; recording sessions only
   *
   * @example {"A": "6f1c2a34-5b6d-4e7f-8a9b-0c1d2e3f4a5b"}
   */
  @ApiPropertyOptional({ type: 'object', additionalProperties: { type: 'string', format: 'uuid' }, nullable: true })
  @BlankIsAbsent()
  @IsOptional()
  @IsObject({ message: 'must be a map from speaker labels to user UUIDs' })
  speakerMapping?: Record<string, unknown> | null;

  /** Text-to-note sessions only */
  @BlankIsAbsent()
  @IsOptional()
  @IsObject()
  @ValidateNested()
  @Type(() => UpdateInputRequest)
  input?: UpdateInputRequest | null;
}

/** `PUT /v1/sessions/{id}/note-templates` (spec, Update session note templates). */
export class NoteTemplatesRequest {
  /** To add or to reprocess */
  @ApiProperty({ type: [String], format: 'uuid' })
  @IsDefined({ message: 'is required' })
  @IsArray({ message: 'must be a list of note template ids' })
  @ArrayNotEmpty({ message: 'must name at least one note template' })
  @Matches(UUID, TEMPLATE_IDS)
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
      speakerMapping: { A: '6f1c2a34-5b6d-4e7f-8a9b-0c1d2e3f4a5b' },
      externalTreatmentPlan: '# Goals\n\nSleep through the night.',
    },
  },
};

/** Spec, Transcript: "Speaker label: letters starting at 'A'". */
const SPEAKER_LABEL = /^[A-Z]+$/;

/**
 * Builds the body of an update, without omitted, null and blank fields, which change nothing (spec, Update an existing
 * session). Pure.
 *
 * @param kind of the session's input, `recording` or `text`; if undefined, the platform checks which fields apply
 * @throws {Problem} 400 `validation`: no field left, a malformed speaker mapping, or a field that does not apply to the
 *   kind of input (the spec's table as corrected: a speaker mapping is for recordings, an input text for texts)
 */
export function updateRequest(dto: UpdateSessionRequest, kind: string | undefined): UpdateTherapySessionRequest {
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
    throw requestFault('', `at least one of ${fields} must not be blank`);
  }
  if (update.speakerMapping && kind === 'text') {
    throw requestFault('/speakerMapping', 'does not apply to a session from a text');
  }
  if (update.input && kind === 'recording') {
    throw requestFault('/input', 'does not apply to a session from a recording');
  }
  return update;
}

function readSpeakerMapping(mapping: Record<string, unknown>): Record<string, string> {
  for (const [label, user] of Object.entries(mapping)) {
    if (!SPEAKER_LABEL.test(label)) throw requestFault('/speakerMapping', 'must have speaker labels such as A as keys');
    if (typeof user !== 'string' || !UUID.test(user)) {
      throw requestFault(`/speakerMapping/${label}`, 'must be the UUID of a user of the platform');
    }
  }
  return mapping as Record<string, string>;
}
