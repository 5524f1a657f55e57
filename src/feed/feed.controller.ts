import { Controller, Get, Query } from '@nestjs/common';
import { ApiTags } from '@nestjs/swagger';
import { Callers } from '../access/guard/callers.js';
import { Caller, type Principal, Scopes } from '../access/identity/scopes.js';
import { Audit } from '../audit/audit.js';
import type { Subject, SubjectKind } from '../audit/audit-record.js';
import { PreferWait, type Wait } from '../http/request/waiting.js';
import { FeedPageResponse, FeedQuery } from './feed.dto.js';
import { startOf } from './feed-cursor.js';
import { LongPoll } from './long-poll.js';

/** The change feed. */
@ApiTags('events')
@Controller('v1/events')
@Scopes('events:read')
export class FeedController {
  constructor(
    private readonly feed: LongPoll,
    private readonly callers: Callers,
    private readonly audit: Audit,
  ) {}

  /**
   * Read the change feed, in order
   *
   * @remarks A filtered page considers up to 1,000 events and may be empty: continue after its `cursor`. A cursor is 410
   * `cursor-gone` if retention deleted an event after it, if it is ahead of the feed, or if the database was restored
   * since. An event is published once a GET shows what it says (docs/reference/events.md): the ends of a session by the
   * first answer that has them, at the latest ten minutes after the platform announced them. Repeats by the platform may
   * be published again.
   */
  @Get()
  async read(
    @Query() query: FeedQuery,
    @PreferWait() wait: Wait,
    @Caller() caller: Principal,
  ): Promise<FeedPageResponse> {
    const page = await this.feed.read(startOf(query.after, query.cursor), query.limit, wait, query);
    if (wait.seconds > 0) await this.callers.requireAllowed(caller);
    for (const { subject } of page.items) this.audit.about(...subjectOf(subject));
    if (page.items.length === 0) this.audit.skipEntry();
    return page;
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
