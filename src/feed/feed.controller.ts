import { Controller, Get, Headers, Query, Res } from '@nestjs/common';
import { ApiOkResponse, ApiOperation, ApiProperty, ApiPropertyOptional, ApiTags } from '@nestjs/swagger';
import { IsOptional, Matches } from 'class-validator';
import type { FastifyReply } from 'fastify';
import { Scopes } from '../access/scopes.js';
import { HangUp } from '../http/hang-up.js';
import { type Page, PageQuery } from '../http/page.js';
import { PreferWait } from '../http/prefer.js';
import { FEED_TYPES, type FeedEvent, type FeedType } from './feed-event.js';
import { FeedStream } from './feed-stream.js';

const CURSOR = /^\d{1,18}$/;

class FeedQuery extends PageQuery {
  @ApiPropertyOptional({
    type: String,
    description: 'The cursor of the last event that was read; without it, from the first',
  })
  @IsOptional()
  @Matches(CURSOR, { message: 'must be the cursor of an event' })
  after?: string;
}

class FeedEventView implements FeedEvent {
  @ApiProperty({ type: String })
  cursor!: string;

  @ApiProperty({ enum: FEED_TYPES })
  type!: FeedType;

  @ApiProperty({ type: String, format: 'date-time' })
  at!: string;

  @ApiProperty({ type: String, example: 'clients/c-1', description: 'A path below /v1' })
  subject!: string;

  @ApiProperty({ type: 'object', additionalProperties: true })
  data!: FeedEvent['data'];
}

/** The change feed. */
@ApiTags('events')
@Controller('v1/events')
@Scopes('events:read')
export class FeedController {
  constructor(private readonly feed: FeedStream) {}

  @Get()
  @ApiOperation({ summary: 'The change feed, in order: a page, or a stream' })
  @ApiOkResponse({ type: [FeedEventView], description: 'A page, or a stream for Accept: text/event-stream' })
  async read(
    @Query() query: FeedQuery,
    @Headers('accept') accept: string | undefined,
    @Headers('last-event-id') lastEventId: string | undefined,
    @PreferWait() wait: number,
    @HangUp() signal: AbortSignal,
    @Res() reply: FastifyReply,
  ): Promise<void> {
    const resumed = lastEventId !== undefined && CURSOR.test(lastEventId) ? lastEventId : undefined;
    const cursor = query.cursor !== undefined && CURSOR.test(query.cursor) ? query.cursor : undefined;
    const after = resumed ?? query.after ?? cursor ?? '0';
    reply.header('cache-control', 'no-store');
    if (accept?.includes('text/event-stream')) {
      await reply
        .header('content-type', 'text/event-stream')
        .header('x-accel-buffering', 'no')
        .send(this.feed.stream(after, signal));
      return;
    }
    const items = await this.feed.await(after, query.limit, wait, signal);
    const page: Page<FeedEvent> = {
      items,
      nextCursor: items.length === query.limit ? (items.at(-1)?.cursor ?? null) : null,
    };
    await reply.send(page);
  }
}
