import { ApiExtraModels, ApiProperty, getSchemaPath } from '@nestjs/swagger';
import { IsOptional, Matches } from 'class-validator';
import { fieldRule, OptionalMoment, OptionalText } from '../http/request/fields.js';
import { BIGINT, PageQuery, PageResponse } from '../http/request/page.js';
import { isMoment } from '../text/moment.js';

/** The id of an entry, or a moment. */
const IsPlace = fieldRule(
  'isPlace',
  (value) => isMoment(value) || (typeof value === 'string' && BIGINT.test(value)),
  'must be the id of an entry, or a date such as 2026-01-31T08:00:00Z',
);

/** Maximum characters of an id of a subject. */
const SUBJECT_MAX = 512;

/** All given conditions must hold. */
export class AuditQuery extends PageQuery {
  /** Only the entry with this id */
  @IsOptional()
  @Matches(BIGINT, { message: 'must be the id of an entry' })
  id?: string;

  /** Only entries about the client with this external id */
  @OptionalText(SUBJECT_MAX)
  client?: string;

  /** Only entries about the provider with this external id */
  @OptionalText(SUBJECT_MAX)
  provider?: string;

  /** Only entries about the session with this id, here or on the platform */
  @OptionalText(SUBJECT_MAX)
  session?: string;

  /** Only entries about the subject with this id */
  @OptionalText(SUBJECT_MAX)
  subject?: string;

  /** Only entries of this key */
  @OptionalText(100)
  keyId?: string;

  /** @example "POST /v1/imports" */
  @OptionalText(200)
  action?: string;

  /** Only entries after the entry with this id, or since this time */
  @IsOptional()
  @IsPlace()
  after?: string;

  /** Only entries before this time */
  @OptionalMoment()
  before?: string;
}

/** Of many ids, which an entry does not name one by one */
export class AuditRangeResponse {
  /** Number of ids; an id that was shown twice may count twice, and of several ranges only the largest counts */
  count!: number;
  /** The smallest id, by its bytes */
  first!: string;
  last!: string;
}

@ApiExtraModels(AuditRangeResponse)
export class AuditResponse {
  id!: string;
  at!: Date;
  /** Id of the key, `admin`, `system`, or `unknown` for callers without a valid key: one entry per source and minute */
  keyId!: string;
  keyName!: string;
  /** The OpenID provider of the person in `keyId` and `keyName`; null for a key */
  issuer!: string | null;
  /** The EHR's id of its end user */
  onBehalfOf!: string | null;
  purpose!: string | null;
  /** @example "PUT /v1/providers/:externalId" */
  action!: string;
  /**
   * The action in words
   *
   * @example "created or updated a provider"
   */
  summary!: string;
  /**
   * Ids by what they are ids of
   *
   * @example { "session": ["7d0f…"], "client": ["C-1"], "provider": ["P-1"] }
   */
  subjects!: Record<string, string[]>;
  /**
   * The ranges of more than 50 ids of a kind. A search for any id within a range finds the entry, also for an id that was
   * not among them.
   */
  @ApiProperty({ type: 'object', additionalProperties: { $ref: getSchemaPath(AuditRangeResponse) } })
  ranges!: Record<string, AuditRangeResponse>;
  /**
   * The query's parameters that selected a range
   *
   * @example { "state": "synced" }
   */
  filter!: Record<string, string> | null;
  /**
   * `ok`, the type of the problem that was answered, or a word such as `released`. `TYPE, N times`: N more
   * requests of this caller had the same outcome within a minute
   *
   * `begun`: recorded before a call to the platform that cannot be undone. If the call failed, another
   * entry with the same requestId says how; every other request has one entry.
   */
  outcome!: string;
  requestId!: string | null;
  /** The caller's IP address */
  source!: string | null;
}

export class AuditPageResponse extends PageResponse {
  items!: AuditResponse[];
}
