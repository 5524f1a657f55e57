import { ApiPropertyOptional } from '@nestjs/swagger';
import { Transform } from 'class-transformer';
import { IsIn, IsOptional, IsString, type ValidationArguments } from 'class-validator';
import { OptionalText } from '../http/request/fields.js';
import { PageQuery, PageResponse } from '../http/request/page.js';
import { FEED_TYPES, type FeedType } from '../words/feed-types.js';
import { type PendingFeedEvents } from './feed.js';

const TYPES = Object.keys(FEED_TYPES);

/** The form of a type. Only such a text is repeated in an error, because others may be personal data. */
const TYPE_FORM = /^[a-z]{1,20}(\.[a-z-]{1,30})?$/;

/** The end of an error: which of some types is unknown. Empty if none is. */
export function unknownType(types: unknown): string {
  const unknown: unknown = [types].flat().find((each) => !TYPES.includes(String(each)));
  if (unknown === undefined) return '';
  return TYPE_FORM.test(String(unknown)) ? `; "${unknown}" is not one` : '; one of them is unknown';
}

const NOT_TYPES = ({ value }: ValidationArguments) =>
  `must be types of events, separated by commas${unknownType(value)}`;

export class FeedQuery extends PageQuery {
  /** The `cursor` of the last page or event; `0` for the oldest event, `latest` for the events from now on */
  @IsOptional()
  @IsString()
  after?: string;

  /** Only events of these types, separated by commas */
  @ApiPropertyOptional({ type: String, isArray: false, example: 'session.notes-ready,session.failed' })
  @IsOptional()
  @Transform(({ value }) => (typeof value === 'string' ? value.split(',') : value))
  @IsIn(TYPES, { each: true, message: NOT_TYPES })
  types?: FeedType[];

  /**
   * Only events about this subject, under any id that it has or had
   *
   * @example clients/c-1
   */
  @OptionalText(1_000)
  subject?: string;
}

/** The events that a reader asks for. */
export type FeedFilter = { [Name in 'types' | 'subject']?: FeedQuery[Name] | undefined };

/** An event as the EHR reads it. */
export class FeedEventResponse {
  /** Its position in the feed, for `after` */
  cursor!: string;
  type!: FeedType;
  at!: Date;

  /**
   * A path below /v1
   *
   * @example clients/c-1
   */
  subject!: string;

  data!: PendingFeedEvents['data'];
}

/** Events in their order. */
export class FeedPageResponse extends PageResponse {
  items!: FeedEventResponse[];

  /** The position read up to, including events that the filter excluded, for `after` */
  cursor!: string;
}
