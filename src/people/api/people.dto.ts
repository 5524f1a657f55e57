import { applyDecorators } from '@nestjs/common';
import { ApiPropertyOptional } from '@nestjs/swagger';
import { Transform, Type } from 'class-transformer';
import { ArrayMaxSize, ArrayNotEmpty, ArrayUnique, IsArray, IsBoolean, IsOptional, ValidateIf } from 'class-validator';
import { fieldRule, OneOf, OptionalOneOf, OptionalText, toBoolean } from '../../http/request/fields.js';
import { PageQuery } from '../../http/request/page.js';
import { isPlatformUuid } from '../../platform/contract/wire-types.js';
import type { ProfileField } from '../../words/field-words.js';
import { PERSON_KINDS, PERSON_STATES, type PersonKind, type PersonState } from '../rules/person.js';
import { type Fault, type Review, UNSETTLED_CODES, UNSETTLED_STATES } from '../rules/person-codes.js';
import { EXTERNAL_ID_MAX, isExternalId, PROFILE_RULES, PROVIDERS_MAX } from '../rules/person-field-rules.js';
import { BULK_ACTIONS, type BulkAction, RESOLVE_ACTIONS, type ResolveAction } from '../rules/resolve-rule.js';

/** Validates a field of a profile. An empty one counts as absent. */
const ProfileText = (field: ProfileField): PropertyDecorator =>
  applyDecorators(
    Transform(({ value }) => (typeof value === 'string' ? value.trim() || undefined : value)),
    fieldRule(field, PROFILE_RULES[field].isValid, PROFILE_RULES[field].message)(),
  );

/** Validates an id of the EHR. */
export const IsExternalId = fieldRule(
  'isExternalId',
  isExternalId,
  `must be an id of the EHR, 1 to ${EXTERNAL_ID_MAX} characters without spaces at its ends`,
);

const IsPlatformUuid = fieldRule(
  'isPlatformUuid',
  isPlatformUuid,
  'must be an id of the platform, which is a UUID. Copy it from there',
);

/** `PUT /v1/providers/{externalId}` (spec, User management: email and names are required). */
export class ProviderRequest {
  /** @example ada.osei@example.org */
  @ProfileText('email')
  email!: string;

  /** @example Ada */
  @ProfileText('firstName')
  firstName!: string;

  /** @example Osei */
  @ProfileText('lastName')
  lastName!: string;
}

/** Maximum people that one request selects by their ids. */
const SELECTION_MAX = 1_000;

/** Maximum bytes of a body with ids: the most people, with the longest ids, every character escaped. */
export const IDS_BODY_LIMIT = SELECTION_MAX * (6 * EXTERNAL_ID_MAX + 3) + 1_024;

/** Maximum bytes of a client: the most providers, in the same way. */
export const CLIENT_BODY_LIMIT = 128 * 1_024;

/** Validates a list of ids of the EHR. */
const ExternalIds = (max: number): PropertyDecorator =>
  applyDecorators(
    IsArray({ message: 'must be a list of external ids' }),
    ArrayMaxSize(max),
    IsExternalId({ each: true }),
  );

/** `PUT /v1/clients/{externalId}/providers` */
export class ClientProvidersRequest {
  /**
   * External ids of all providers; the first is the primary
   *
   * @example ['p-1']
   */
  @ArrayNotEmpty({ message: 'must name at least one provider; the first is the primary' })
  @ArrayUnique({ message: 'must name each provider once' })
  @ExternalIds(PROVIDERS_MAX)
  providers!: string[];
}

/** `PUT /v1/clients/{externalId}` (spec, User management: email is optional). */
export class ClientRequest extends ClientProvidersRequest {
  /** @example Noor */
  @ProfileText('firstName')
  firstName!: string;

  /** @example Haddad */
  @ProfileText('lastName')
  lastName!: string;

  /** @example noor@example.org */
  @IsOptional()
  @ProfileText('email')
  email?: string | null;
}

/** `GET /v1/providers` and `GET /v1/clients` */
export class PeopleQuery extends PageQuery {
  @OptionalOneOf(PERSON_STATES)
  state?: PersonState;
}

/** `GET /v1/clients` */
export class ClientsQuery extends PeopleQuery {
  /** External id of a provider: only its clients */
  @OptionalText(EXTERNAL_ID_MAX)
  provider?: string;
}

/** Maximum external ids of each kind in a request for names: a page of sessions. */
const NAMES_MAX = 200;

/** `POST /v1/people/names`. In the body, because a URL is too short for them. */
export class NamesRequest {
  /** External ids of providers */
  @IsOptional()
  @ExternalIds(NAMES_MAX)
  providers?: string[];

  /** External ids of clients */
  @IsOptional()
  @ExternalIds(NAMES_MAX)
  clients?: string[];
}

/** `POST /v1/people/search`: at least one of the two. In the body, because an email must not appear in a URL. */
export class SearchRequest {
  @ValidateIf((dto: SearchRequest) => dto.email !== undefined || dto.externalId === undefined)
  @ProfileText('email')
  email?: string;

  @ValidateIf((dto: SearchRequest) => dto.externalId !== undefined)
  @IsExternalId()
  externalId?: string;
}

/** `POST /v1/people/trace` */
export class TraceRequest {
  @IsExternalId()
  externalId!: string;

  @OneOf(PERSON_KINDS)
  kind!: PersonKind;
}

/** `POST /v1/{providers|clients}/{externalId}/rename` */
export class RenameRequest {
  /** The new id, which must never have been used */
  @IsExternalId()
  externalId!: string;
}

/** `POST /v1/clients/{externalId}/merge` */
export class MergeRequest {
  /** The id of the surviving client */
  @IsExternalId()
  into!: string;
}

/** `POST /v1/{providers|clients}/{externalId}/resolve` */
export class ResolveRequest {
  /** `delete` is only for code delete-linked, `deleted` only for delete-unconfirmed */
  @OneOf(RESOLVE_ACTIONS)
  action!: ResolveAction;

  /** The platform user to link to, a UUID; only with `link`, which needs it */
  @ValidateIf(({ action }: ResolveRequest, value: unknown) => action === 'link' || value !== undefined)
  @IsPlatformUuid()
  platformUserId?: string;
}

const IsCount = fieldRule(
  'isCount',
  (value) => Number.isInteger(value) && Number(value) >= 0,
  'must be the count of a dry run of the same selection. Ask for it with dryRun',
);

/** A retry loses nothing. Any other action is counted first. */
const hasCount = ({ action = 'retry', dryRun, count }: Partial<SelectionRequest>): boolean =>
  count !== undefined || (action !== 'retry' && !dryRun);

/** The query of `POST /v1/people/retry` */
export class RetryQuery {
  /** Selects the people that need a review or have failed for this reason */
  @OneOf(UNSETTLED_CODES)
  code!: Review | Fault;

  @OptionalOneOf(UNSETTLED_STATES)
  state?: (typeof UNSETTLED_STATES)[number];

  @OptionalOneOf(PERSON_KINDS)
  kind?: PersonKind;

  /** True to count only. Defaults to false */
  @ApiPropertyOptional()
  @Transform(toBoolean)
  @IsBoolean({ message: 'must be true or false' })
  dryRun: boolean = false;

  /** The count of the dry run: if there are more people now, none is changed. Only a retry needs none: it defaults to all */
  @ValidateIf(hasCount)
  @Type(() => Number)
  @IsCount()
  count?: number;
}

/** `POST /v1/people/resolve` */
export class SelectionRequest extends RetryQuery {
  @OneOf(BULK_ACTIONS)
  action!: BulkAction;

  /** Selects only these. Defaults to all */
  @IsOptional()
  @ArrayNotEmpty({ message: 'must name at least one person, or be left out' })
  @ExternalIds(SELECTION_MAX)
  externalIds?: string[];
}

export class SelectionResponse {
  dryRun!: boolean;
  /** Resolved people; with dryRun, those that accept the action */
  count!: number;
}
