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
import { TREATMENT_PLAN_MAX_LENGTH } from '../../platform/contract/wire-types.js';
import { MaxCharacters } from '../model/max-characters.js';
import { UUID } from '../read/uuid.js';

const TEMPLATE_IDS = { each: true, message: 'must hold UUIDs of note templates' };

export class UpdateInputDto {
  @ApiProperty({ type: String, nullable: true, description: "The provider's text notes of the session" })
  @ValidateIf((_, value) => value !== null)
  @IsString({ message: 'is required and must be a text' })
  text!: string | null;
}

/** A blank text in the place of any field says nothing (spec, Update an existing session). */
function BlankIsAbsent(): PropertyDecorator {
  return Transform(({ value }) => (typeof value === 'string' && value.trim() === '' ? null : value));
}

/** `PATCH /v1/sessions/{id}` (spec, Update an existing session): what is absent, null or blank stays as it is. */
export class UpdateSessionDto {
  @ApiPropertyOptional({ type: [String], format: 'uuid', nullable: true, description: 'To add or to reprocess' })
  @BlankIsAbsent()
  @IsOptional()
  @IsArray({ message: 'must be a list of note template ids' })
  @Matches(UUID, TEMPLATE_IDS)
  noteTemplateIds?: string[] | null;

  @ApiPropertyOptional({ type: String, nullable: true, maxLength: TREATMENT_PLAN_MAX_LENGTH, description: 'Markdown' })
  @BlankIsAbsent()
  @IsOptional()
  @IsString()
  @MaxCharacters(TREATMENT_PLAN_MAX_LENGTH)
  externalTreatmentPlan?: string | null;

  @ApiPropertyOptional({
    type: 'object',
    additionalProperties: { type: 'string', format: 'uuid' },
    nullable: true,
    example: { A: '6f1c2a34-5b6d-4e7f-8a9b-0c1d2e3f4a5b' },
    description: "Speaker label to the platform's user UUID; recording sessions only",
  })
  @BlankIsAbsent()
  @IsOptional()
  @IsObject({ message: 'must be a map from speaker labels to user UUIDs' })
  speakerMapping?: Record<string, unknown> | null;

  @ApiPropertyOptional({ type: UpdateInputDto, nullable: true, description: 'Text-to-note sessions only' })
  @BlankIsAbsent()
  @IsOptional()
  @IsObject()
  @ValidateNested()
  @Type(() => UpdateInputDto)
  input?: UpdateInputDto | null;
}

/** `PUT /v1/sessions/{id}/note-templates` (spec, Update session note templates). */
export class NoteTemplatesDto {
  @ApiProperty({ type: [String], format: 'uuid', description: 'To add or to reprocess' })
  @IsDefined({ message: 'is required' })
  @IsArray({ message: 'must be a list of note template ids' })
  @ArrayNotEmpty({ message: 'must name at least one note template' })
  @Matches(UUID, TEMPLATE_IDS)
  noteTemplateIds!: string[];
}
