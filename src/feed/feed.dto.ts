import { IsOptional, IsString } from 'class-validator';
import { PageQuery, PageResponse } from '../http/request/page.js';
import type { FeedType, PendingFeedEvents } from './feed.js';

export class FeedQuery extends PageQuery {
  /** The cursor of the last event that was read; without it, from the first */
  @IsOptional()
  @IsString()
  after?: string;
}

/** An event as the EHR reads it. */
export class FeedEventResponse {
  /** Grows with every event; hand it back as `after` */
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
}
