import { Controller, Get, Headers, Query, Res } from '@nestjs/common';
import { ApiExtraModels, ApiHeader, ApiOkResponse, ApiTags, getSchemaPath } from '@nestjs/swagger';
import type { FastifyReply } from 'fastify';
import { Callers } from '../access/guard/callers.js';
import { EVENT_STREAM, EventStreams, prefersStream } from '../access/guard/event-streams.js';
import { Caller, type Principal, Scopes } from '../access/identity/scopes.js';
import { Audit } from '../audit/audit.js';
import type { Subject, SubjectKind } from '../audit/audit-record.js';
import { PreferWait, type Wait } from '../http/request/waiting.js';
import { type FeedEventResponse, FeedPageResponse, FeedQuery } from './feed.dto.js';
import { startOf } from './feed-cursor.js';
import { FeedStream } from './feed-stream.js';

/** The change feed. */
@ApiTags('events')
@Controller('v1/events')
@Scopes('events:read')
export class FeedController {
  constructor(
    private readonly feed: FeedStream,
    private readonly streams: EventStreams,
    private readonly callers: Callers,
    private readonly audit: Audit,
  ) {}

  /**
   * Read the change feed, in order: a page, or a stream
   *
   * @remarks A filtered page considers up to 1,000 events and may be empty: continue after its `cursor`. A cursor is 410
   * `cursor-gone` if retention deleted an event after it, if it is ahead of the feed, or if the database was restored
   * since. An event is published once a GET shows what it says (docs/reference/events.md): the ends of a session by the
   * first answer that has them, at the latest ten minutes after the platform announced them. Repeats by the platform may
   * be published again.
   */
  @Get()
  @ApiHeader({
    name: 'Last-Event-ID',
    required: false,
    description: 'Like `after`; browsers send it when they reopen a stream',
  })
  @ApiExtraModels(FeedPageResponse)
  @ApiOkResponse({
    description: 'A page, or a stream for Accept: text/event-stream',
    content: { 'application/json': { schema: { $ref: getSchemaPath(FeedPageResponse) } }, ...EVENT_STREAM },
  })
  async read(
    @Query() query: FeedQuery,
    @Headers('accept') accept: string | undefined,
    @Headers('last-event-id') lastEventId: string | undefined,
    @PreferWait() { seconds: wait, signal }: Wait,
    @Caller() caller: Principal,
    @Res() reply: FastifyReply,
  ): Promise<void> {
    const after = startOf(lastEventId, query.after, query.cursor);
    if (prefersStream(accept)) {
      await this.streams.send(reply, caller, async () => {
        const events = await this.feed.open(after, signal, query);
        return this.audit.parts(events, (sent) =>
          sent.flatMap((one) => ('data' in one ? [subjectOf((one.data as FeedEventResponse).subject)] : [])),
        );
      });
      return;
    }
    const page = await this.feed.await(after, query.limit, wait, signal, query);
    if (wait > 0) await this.callers.requireAllowed(caller);
    for (const { subject } of page.items) this.audit.about(...subjectOf(subject));
    if (page.items.length === 0) this.audit.skipEntry();
    await this.audit.commit();
    await reply.send(page);
  }
}

/** The kinds of subjects, as the audit log names them. */
const KINDS: Record<string, SubjectKind> = {
  clients: 'client',
  providers: 'provider',
  sessions: 'session',
  imports: 'import',
  subscriptions: 'subscription',
  'compliance/jobs': 'compliance-job',
  'smart-edit/jobs': 'smart-edit-job',
  'processing-sessions': 'processing-session',
  'webhook-deliveries': 'delivery',
};

/** The subject of an event for the audit log. @param path below /v1 @returns no id if the path has no route */
function subjectOf(path: string): Subject {
  const slash = path.lastIndexOf('/');
  const kind = KINDS[path.slice(0, slash)];
  return kind ? [kind, decodeURIComponent(path.slice(slash + 1))] : ['platform-user', null];
}
