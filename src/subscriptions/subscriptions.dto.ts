import { applyDecorators } from '@nestjs/common';
import { ApiProperty, ApiPropertyOptional } from '@nestjs/swagger';
import { IsBoolean, IsObject, IsOptional, Matches, ValidateBy } from 'class-validator';
import { unknownType } from '../feed/feed.dto.js';
import { MaxCharacters, OptionalText } from '../http/request/fields.js';
import { PageResponse } from '../http/request/page.js';
import { FEED_TYPES, type FeedType } from '../words/feed-types.js';
import { PUSH_FAULTS, type PushFault } from './push/endpoint.js';
import { PAUSE_REASONS, type PauseReason } from './push/push-rules.js';
import { STATES, type State } from './push/subscription-row.js';

const TYPES = Object.keys(FEED_TYPES);
const URL_CHARACTERS = 2_000;
const DESCRIPTION_CHARACTERS = 200;

/** A cursor of the feed, or a word for one. */
const CURSOR = /^(0|latest|\d{1,18}-\d{1,18})$/;
const NOT_A_CURSOR = { message: 'must be a text: the cursor of an event, 0 or latest' };

const isTypes = (value: unknown) =>
  Array.isArray(value) &&
  value.length > 0 &&
  new Set(value).size === value.length &&
  value.every((each) => TYPES.includes(each));

/** Types of events; without them, or with null, all. */
const OptionalTypes = (): PropertyDecorator =>
  applyDecorators(
    ApiPropertyOptional({ enum: TYPES, isArray: true, nullable: true, minItems: 1, uniqueItems: true }),
    IsOptional(),
    ValidateBy({
      name: 'eventTypes',
      validator: {
        validate: isTypes,
        defaultMessage: (fault) => `must be a list of types of events, each once${unknownType(fault?.value)}`,
      },
    }),
  );

/** Headers that are sent with each push. */
const OptionalHeaders = (): PropertyDecorator =>
  applyDecorators(
    ApiPropertyOptional({ type: 'object', additionalProperties: { type: 'string', maxLength: 4_000 }, nullable: true }),
    IsOptional(),
    IsObject({ message: 'must be an object of names and values' }),
  );

export class NewSubscriptionRequest {
  /**
   * The URL that receives each event by POST: https, or http to this machine. May contain a token, but nothing
   * personal
   */
  @MaxCharacters(URL_CHARACTERS)
  url!: string;

  /** Only events of these types. Defaults to all, including types of later versions */
  @OptionalTypes()
  types?: FeedType[] | null;

  /**
   * Headers to send with each push, such as a gateway needs: at most 10. They are stored encrypted, and never shown
   *
   * @example {"x-gateway-key": "not-a-real-key"}
   */
  @OptionalHeaders()
  headers?: Record<string, unknown> | null;

  /** Its purpose; not the name of a person */
  @OptionalText(DESCRIPTION_CHARACTERS)
  description?: string;

  /** The cursor after which it begins; 0 for the oldest event, latest (the default) for the events from now on */
  @IsOptional()
  @Matches(CURSOR, NOT_A_CURSOR)
  after?: string;
}

export class ChangeSubscriptionRequest {
  @ApiPropertyOptional({ type: String, maxLength: URL_CHARACTERS })
  @IsOptional()
  @MaxCharacters(URL_CHARACTERS)
  url?: string;

  /** Only events of these types; null for all */
  @OptionalTypes()
  types?: FeedType[] | null;

  /** Replaces all headers that are sent with each push; null for none. Needed if `url` names another host, and there are any */
  @OptionalHeaders()
  headers?: Record<string, unknown> | null;

  /** True pauses, false resumes after the last event that the endpoint accepted. Events wait during a pause */
  @IsOptional()
  @IsBoolean({ message: 'must be true or false' })
  paused?: boolean;

  /** Continues after this cursor instead; 0 for the oldest event, latest for the events from now on */
  @IsOptional()
  @Matches(CURSOR, NOT_A_CURSOR)
  after?: string;
}

export class SkipRequest {
  /** The cursor of the event to skip, which must be the next one */
  @Matches(/^\d{1,18}-\d{1,18}$/, { message: 'must be the cursor of an event' })
  cursor!: string;
}

/** The answer of an endpoint. */
export class PushAnswerResponse {
  at!: Date;

  /** The HTTP status; null without an answer */
  status!: number | null;

  /** Why the attempt failed; null if it succeeded */
  @ApiProperty({ enum: PUSH_FAULTS, nullable: true })
  fault!: PushFault | null;
}

/** The event that is pushed next. */
export class NextEventResponse {
  cursor!: string;
  type!: string;
  at!: Date;
}

export class SubscriptionResponse {
  @ApiProperty({ format: 'uuid' })
  id!: string;
  url!: string;

  /** Null for all */
  @ApiProperty({ enum: TYPES, isArray: true, nullable: true })
  types!: FeedType[] | null;

  description!: string | null;

  /** The names of the headers that are sent with each push */
  headers!: string[];

  /**
   * `retrying`: the last attempt failed, and is repeated. `cursor-expired`: retention deleted events that were not pushed,
   * or the database was restored; PATCH `after` to choose where to continue
   */
  @ApiProperty({ enum: STATES })
  state!: State;

  /** Why it is paused; null if it is not */
  @ApiProperty({ enum: PAUSE_REASONS, nullable: true })
  pausedReason!: PauseReason | null;

  pausedAt!: Date | null;

  /** The cursor of the last event that was delivered, or excluded by its types */
  cursor!: string;

  /** Events after `cursor`, of all types */
  behind!: number;

  /** The oldest event that is not delivered; null if all are */
  next!: NextEventResponse | null;

  /** Consecutive failed attempts */
  failures!: number;

  /** The first of them; null if it was no fault of the endpoint */
  failingSince!: Date | null;

  /** When a failed attempt is repeated; null if none failed, or sending is held */
  nextAttemptAt!: Date | null;

  lastAnswer!: PushAnswerResponse | null;

  /** When the last event was delivered */
  deliveredAt!: Date | null;

  /** Until when the former secret also signs; null if there is only one */
  formerSecretUntil!: Date | null;

  createdAt!: Date;
}

/** An attempt to push an event. */
export class AttemptResponse extends PushAnswerResponse {
  /** The event; null if the attempt failed before one was read */
  @ApiProperty({ type: String, nullable: true })
  cursor!: string | null;

  @ApiProperty({ type: String, nullable: true })
  type!: string | null;

  durationMs!: number;
}

export class AttemptPageResponse extends PageResponse {
  items!: AttemptResponse[];
}

export class NewSubscriptionResponse extends SubscriptionResponse {
  /**
   * Verifies the signatures of Standard Webhooks. Shown only this once
   *
   * @example whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw
   */
  secret!: string;
}

export class SubscriptionPageResponse extends PageResponse {
  items!: SubscriptionResponse[];
}
