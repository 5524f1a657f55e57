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
import { UUID } from '../../http/request/uuid-param.js';
import { TREATMENT_PLAN_MAX_LENGTH } from '../../platform/contract/wire-types.js';
import { EXAMPLE_TEMPLATE } from '../create/create-examples.js';
import { MaxCharacters } from '../model/field-rules.js';

const TEMPLATE_IDS = { each: true, message: 'must hold UUIDs of note templates' };

export class UpdateInputRequest {
  /** The provider's text notes of the session */
  @ValidateIf((_, value) => value !== null)
  @IsString({ message: 'is required and must be a text' })
  text!: string | null;
}

/** A blank text in the place of any field says nothing (spec, Update an existing session). */
function BlankIsAbsent(): PropertyDecorator {
  return Transform(({ value }) => (typeof value === 'string' && value.trim() === '' ? null : value));
}

/** `PATCH /v1/sessions/{id}` (spec, Update an existing session): what is absent, null or blank stays as it is. */
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
    summary: 'Of a session from a text',
    value: { input: { text: 'Slept better, and went for walks.' }, noteTemplateIds: [EXAMPLE_TEMPLATE] },
  },
  recording: {
    summary: 'Of a session from recordings',
    value: {
      speakerMapping: { A: '6f1c2a34-5b6d-4e7f-8a9b-0c1d2e3f4a5b' },
      externalTreatmentPlan: '# Goals\n\nSleep through the night.',
    },
  },
};
