import { ApiPropertyOptional } from '@nestjs/swagger';
import { Type } from 'class-transformer';
import {
  ArrayNotEmpty,
  IsArray,
  IsIn,
  IsObject,
  IsOptional,
  IsString,
  Matches,
  ValidateBy,
  ValidateIf,
  ValidateNested,
} from 'class-validator';
import { IsExternalId } from '../../people/api/people.dto.js';
import { IsPlatformId } from '../../platform/contract/is-platform-id.js';
import {
  CLIENT_PRONOUNS,
  PLATFORM_ID_MAX,
  RECORDING_CONTENTS,
  SESSION_TYPES,
  TREATMENT_PLAN_MAX_LENGTH,
} from '../../platform/contract/wire-types.js';
import { IsSessionDate } from './session-date.js';

/** Bytes of a request's body: a treatment plan of 100,000 characters and long notes. */
export const SESSION_BODY_LIMIT = 2 * 1024 ** 2;

const NOT_BLANK = { message: 'must not be blank' };

/**
 * A text of at most `max` code points. class-validator's MaxLength ignores variation selectors, so that a text of any
 * length could pass.
 */
export function MaxCharacters(max: number): PropertyDecorator {
  const validate = (value: unknown) => {
    if (typeof value !== 'string') return false;
    let count = 0;
    for (const _character of value) count += 1;
    return count <= max;
  };
  const defaultMessage = () => `must hold at most ${max} characters`;
  return ValidateBy({ name: 'maxCharacters', validator: { validate, defaultMessage } });
}

export class RecordingInputRequest {
  /** In order; `POST /v1/recordings` returns such URLs */
  @IsArray({ message: 'must be a list of URLs' })
  @ArrayNotEmpty({ message: 'must name at least one recording' })
  @IsString({ each: true, message: 'must be a list of URLs' })
  recordingUrls!: string[];

  @IsIn(RECORDING_CONTENTS, { message: `must be ${RECORDING_CONTENTS.join(' or ')}` })
  recordingContent!: (typeof RECORDING_CONTENTS)[number];
}

export class TextInputRequest {
  /** The provider's text notes of the session */
  @IsString()
  @Matches(/\S/, NOT_BLANK)
  text!: string;
}

/** Exactly one of the two. */
export class SessionInputRequest {
  @IsOptional()
  @IsObject()
  @ValidateNested()
  @Type(() => RecordingInputRequest)
  recording?: RecordingInputRequest | null;

  @IsOptional()
  @IsObject()
  @ValidateNested()
  @Type(() => TextInputRequest)
  text?: TextInputRequest | null;
}

/** `POST /v1/sessions` (spec, Therapy session creation request); people are identified by the EHR's ids. */
export class CreateSessionRequest {
  /** @example p-1 */
  @IsExternalId()
  provider!: string;

  /**
   * A client that the provider treats
   *
   * @example c-1
   */
  @IsOptional()
  @IsExternalId()
  client?: string | null;

  /** Only without `client` */
  @IsOptional()
  @IsIn(CLIENT_PRONOUNS, { message: `must be one of ${CLIENT_PRONOUNS.join(', ')}` })
  clientPronouns?: (typeof CLIENT_PRONOUNS)[number] | null;

  /** Either these or `sessionType` */
  @IsOptional()
  @IsArray({ message: 'must be a list of note template ids' })
  @ArrayNotEmpty({ message: 'must name at least one note template' })
  @IsString({ each: true, message: 'must hold note template ids' })
  @Matches(/\S/, { each: true, message: 'must hold no blank id' })
  @IsPlatformId({ each: true })
  noteTemplateIds?: string[] | null;

  /** Work in progress at the platform, which does not support the Couple types yet */
  @IsOptional()
  @IsIn(SESSION_TYPES, { message: `must be one of ${SESSION_TYPES.join(', ')}` })
  sessionType?: (typeof SESSION_TYPES)[number] | null;

  @IsObject()
  @ValidateNested()
  @Type(() => SessionInputRequest)
  input!: SessionInputRequest;

  /** ISO 8601 in extended, basic or week form, with a time of day; defaults to now */
  @IsOptional()
  @IsSessionDate()
  date?: string | null;

  @ApiPropertyOptional({ type: String, nullable: true, maxLength: PLATFORM_ID_MAX })
  @IsOptional()
  @IsString()
  @Matches(/^[^\p{Cc}\p{Cs}]*$/u, { message: 'must not contain control characters' })
  @Matches(/\S/, NOT_BLANK)
  @IsPlatformId()
  partnerAppointmentId?: string | null;

  /** Markdown */
  @ApiPropertyOptional({ type: String, nullable: true, maxLength: TREATMENT_PLAN_MAX_LENGTH })
  @IsOptional()
  @IsString()
  @MaxCharacters(TREATMENT_PLAN_MAX_LENGTH)
  externalTreatmentPlan?: string | null;
}

/** The query of `POST /v1/sessions` */
export class CreateSessionQuery {
  /** Allows another session for the same provider and appointment */
  @IsOptional()
  @IsIn(['true', 'false'])
  allowDuplicate?: 'true' | 'false';
}

/** The actions that resolve a request whose outcome is unknown. */
const REQUEST_ACTIONS = ['link', 'create', 'abandon'] as const;

/** `POST /v1/sessions/{id}/resolve` */
export class ResolveSessionRequest {
  @IsIn(REQUEST_ACTIONS, { message: `must be one of ${REQUEST_ACTIONS.join(', ')}` })
  action!: (typeof REQUEST_ACTIONS)[number];

  /** The platform's id of the session; with `link` only */
  @ValidateIf((dto: ResolveSessionRequest) => dto.action === 'link' || dto.sessionId !== undefined)
  @IsString()
  @Matches(/^\S+$/, { message: 'must be the id of a session on the platform' })
  @IsPlatformId()
  sessionId?: string;
}

export const EXAMPLE_TEMPLATE = '8bc81bb8-ff09-450a-8512-e7334b3fee7d';

/** OpenAPI examples of `POST /v1/sessions`: each is valid, unlike a body with every field. */
export const CREATE_EXAMPLES: Record<string, { summary: string; value: CreateSessionRequest }> = {
  text: {
    summary: "From a provider's text",
    value: {
      provider: 'p-1',
      client: 'c-1',
      noteTemplateIds: [EXAMPLE_TEMPLATE],
      input: { text: { text: 'Came with better sleep; went through the plan for the week.' } },
      date: '2026-01-31T08:00:00Z',
      partnerAppointmentId: 'visit-17',
      externalTreatmentPlan: '# Goals\n\nSleep through the night.',
    },
  },
  recording: {
    summary: 'From recordings, with pronouns instead of a client',
    value: {
      provider: 'p-1',
      clientPronouns: 'NeutralThem',
      noteTemplateIds: [EXAMPLE_TEMPLATE],
      input: {
        recording: { recordingUrls: ['https://files.example.org/1.wav'], recordingContent: 'Recording' },
      },
    },
  },
  sessionType: {
    summary: 'By session type (work in progress at the platform)',
    value: { provider: 'p-1', client: 'c-1', sessionType: 'Soap', input: { text: { text: 'Slept better.' } } },
  },
};
