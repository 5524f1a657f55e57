import { ApiProperty, ApiPropertyOptional } from '@nestjs/swagger';
import { IsOptional, IsString, Matches } from 'class-validator';
import { ListOf, Nested, OneOf, OptionalDateTime, OptionalOneOf, OptionalText } from '../../http/request/fields.js';
import { IsExternalId } from '../../people/api/people.dto.js';
import { IsLinkTarget, IsPlatformId } from '../../platform/contract/is-platform-id.js';
import {
  CLIENT_PRONOUNS,
  isPlatformId,
  PLATFORM_ID_MAX,
  RECORDING_CONTENTS,
  SESSION_TYPES,
  TREATMENT_PLAN_MAX_LENGTH,
} from '../../platform/contract/wire-types.js';

/** Bytes of a request's body: a treatment plan of 100,000 characters and long notes. */
export const SESSION_BODY_LIMIT = 2 * 1024 ** 2;

const NOT_BLANK = { message: 'must not be blank' };

export class RecordingInputRequest {
  /** In order; `POST /v1/recordings` returns such URLs */
  @ApiProperty({ type: [String], minItems: 1 })
  @ListOf('URLs', (value) => typeof value === 'string')
  recordingUrls!: string[];

  @OneOf(RECORDING_CONTENTS)
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
  @Nested(() => RecordingInputRequest)
  recording?: RecordingInputRequest | null;

  @IsOptional()
  @Nested(() => TextInputRequest)
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
  @OptionalOneOf(CLIENT_PRONOUNS)
  clientPronouns?: (typeof CLIENT_PRONOUNS)[number] | null;

  /** Either these or `sessionType` */
  @ApiPropertyOptional({ type: [String], pattern: '\\S', minItems: 1, nullable: true })
  @IsOptional()
  @ListOf('note template ids', (value) => isPlatformId(value) && /\S/.test(value))
  noteTemplateIds?: string[] | null;

  /** Work in progress at the platform, which does not support the Couple types yet */
  @OptionalOneOf(SESSION_TYPES)
  sessionType?: (typeof SESSION_TYPES)[number] | null;

  @Nested(() => SessionInputRequest)
  input!: SessionInputRequest;

  /** ISO 8601 in extended, basic or week form, with a time of day; defaults to now */
  @OptionalDateTime()
  date?: string | null;

  @ApiPropertyOptional({ type: String, nullable: true, maxLength: PLATFORM_ID_MAX })
  @IsOptional()
  @Matches(/^[^\p{Cc}\p{Cs}]*$/u, { message: 'must not contain control characters' })
  @Matches(/\S/, NOT_BLANK)
  @IsPlatformId()
  partnerAppointmentId?: string | null;

  /** Markdown */
  @OptionalText(TREATMENT_PLAN_MAX_LENGTH)
  externalTreatmentPlan?: string | null;
}

/** The query of `POST /v1/sessions` */
export class CreateSessionQuery {
  /** Allows another session for the same provider and appointment */
  @OptionalOneOf(['true', 'false'])
  allowDuplicate?: 'true' | 'false';
}

/** `POST /v1/sessions/{id}/resolve` */
export class ResolveSessionRequest {
  @OneOf(['link', 'create', 'abandon'])
  action!: 'link' | 'create' | 'abandon';

  /** The platform's id of the session; with `link` only */
  @IsLinkTarget()
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
