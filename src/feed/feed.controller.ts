import { Controller, Get, Headers, Query, Res } from '@nestjs/common';
import { ApiOkResponse, ApiOperation, ApiProperty, ApiPropertyOptional, ApiTags } from '@nestjs/swagger';
import { IsOptional, IsString } from 'class-validator';
import type { FastifyReply } from 'fastify';
import { EventStreams } from '../access/guard/event-streams.js';
import { Caller, type Principal } from '../access/identity/caller.js';
import { Scopes } from '../access/identity/scopes.js';
import { ClientDisconnect } from '../http/request/client-disconnect.js';
import { type Page, PageQuery } from '../http/request/page.js';
import { PreferWait } from '../http/request/prefer.js';
import { startOf } from './feed-cursor.js';
import { FEED_TYPES, type FeedEvent, type FeedType } from './feed-event.js';
import { FeedStream } from './feed-stream.js';

class FeedQuery extends PageQuery {
  @ApiPropertyOptional({
    type: String,
    description: 'The cursor of the last event that was read; without it, from the first',
  })
  @IsOptional()
  @IsString()
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
  constructor(
    private readonly feed: FeedStream,
    private readonly streams: EventStreams,
  ) {}

  @Get()
  @ApiOperation({
    summary: 'The change feed, in order: a page, or a stream',
    description: [
      'Every event of the platform’s webhooks is told as it comes, whether its subject can be fetched or not: of sessions',
      'session.created, session.processing-started, session.notes-completed, session.completed and session.failed, with',
      'aiNotesEnabled as the event says it; processing.finished, processing.notes-finished and user.created. What the',
      'platform repeats may be told again. session.notes-ready follows when other notes were fetched.',
    ].join(' '),
  })
  @ApiOkResponse({ type: [FeedEventView], description: 'A page, or a stream for Accept: text/event-stream' })
  async read(
    @Query() query: FeedQuery,
    @Headers('accept') accept: string | undefined,
    @Headers('last-event-id') lastEventId: string | undefined,
    @PreferWait() wait: number,
    @ClientDisconnect() signal: AbortSignal,
    @Caller() caller: Principal,
    @Res() reply: FastifyReply,
  ): Promise<void> {
    const after = startOf({ lastEventId, after: query.after, cursor: query.cursor });
    if (accept?.includes('text/event-stream')) {
      await this.streams.send(reply, caller, () => this.feed.stream(after, signal));
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
