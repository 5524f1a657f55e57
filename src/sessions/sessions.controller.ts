import { Body, Controller, Get, Header, Headers, HttpCode, Param, Patch, Post, Put, Query, Res } from '@nestjs/common';
import {
  ApiAcceptedResponse,
  ApiBody,
  ApiCreatedResponse,
  ApiExtraModels,
  ApiOkResponse,
  ApiTags,
} from '@nestjs/swagger';
import type { FastifyReply } from 'fastify';
import { AnswerVisibility } from '../access/guard/visible-to.js';
import { Caller, type Principal, Scopes } from '../access/identity/scopes.js';
import { Unaudited } from '../audit/audit.interceptor.js';
import { Clock } from '../config/clock.js';
import { Problem } from '../http/problem/problem.js';
import { preferredType } from '../http/request/accept.js';
import { PageQuery } from '../http/request/page.js';
import { RouteOptions } from '../http/request/route-options.js';
import { ClientDisconnect, PreferWait, type Wait } from '../http/request/waiting.js';
import { CreationId, Idempotent } from '../idempotency/idempotency.interceptor.js';
import {
  CREATE_EXAMPLES,
  CreateSessionQuery,
  CreateSessionRequest,
  ResolveSessionRequest,
  SESSION_BODY_LIMIT,
} from './create/create-session.dto.js';
import { SessionRequests } from './create/session-requests.service.js';
import { RefreshesRepository } from './fetch/refreshes.repository.js';
import {
  NotesResponse,
  PendingRefreshesResponse,
  RecordingUrlResponse,
  RefreshesResponse,
  RevisionsResponse,
  SessionPageResponse,
  SessionResponse,
} from './model/session-view.js';
import { INSIGHTS, TRANSCRIPT } from './read/insights-schema.js';
import { NamedSpeakers } from './read/named-speakers.js';
import { NOTE_CONTENT, NOTE_FORMATS } from './read/note-formats.js';
import { notesAsFhir } from './read/notes-fhir.js';
import { notesAsMarkdown } from './read/notes-markdown.js';
import { SessionReader } from './read/session-reader.js';
import { SessionTimeline } from './read/session-timeline.js';
import { PendingQuery, RefreshRequest, SessionsQuery } from './read/sessions.dto.js';
import { TimelinePageResponse } from './read/timeline.dto.js';
import { SessionUpdates } from './update/session-updates.service.js';
import { NoteTemplatesRequest, UPDATE_EXAMPLES, UpdateSessionRequest } from './update/update-session.dto.js';

/** How long a create waits for the platform's id without `Prefer: wait`. */
const CREATE_WAIT_SECONDS = 10;

/** Routes to read, request and change sessions; `{id}` is ours or the platform's. */
@ApiTags('sessions')
@Controller('v1/sessions')
export class SessionsController {
  constructor(
    private readonly reader: SessionReader,
    private readonly speakers: NamedSpeakers,
    private readonly timeline: SessionTimeline,
    private readonly refreshes: RefreshesRepository,
    private readonly requests: SessionRequests,
    private readonly updates: SessionUpdates,
    private readonly clock: Clock,
    private readonly visibility: AnswerVisibility,
  ) {}

  /** List sessions by last change, oldest first by default */
  @Get()
  @Scopes('sessions:read')
  async list(@Query() query: SessionsQuery): Promise<SessionPageResponse> {
    return this.reader.list(query);
  }

  /**
   * Request a session from a text or from recordings
   *
   * @remarks 201 once the platform's id is known, otherwise 202. Without `Prefer: wait` the response waits up to 10
   * seconds for it.
   */
  @Post()
  @HttpCode(201)
  @Scopes('sessions:write')
  @RouteOptions({ bodyLimit: SESSION_BODY_LIMIT })
  @Idempotent()
  @ApiBody({ type: CreateSessionRequest, examples: CREATE_EXAMPLES })
  @ApiCreatedResponse({ type: SessionResponse })
  @ApiAcceptedResponse({ type: SessionResponse, description: 'Stored, and shown as Requested or Unknown' })
  async create(
    @CreationId() id: string,
    @Body() dto: CreateSessionRequest,
    @Query() { allowDuplicate }: CreateSessionQuery,
    @PreferWait(CREATE_WAIT_SECONDS) wait: Wait,
    @Res({ passthrough: true }) reply: FastifyReply,
  ): Promise<SessionResponse> {
    const session = await this.requests.create(id, dto, allowDuplicate === 'true', wait);
    reply.header('location', `/v1/sessions/${session.id}`).code(session.sessionId === null ? 202 : 201);
    return session;
  }

  /** Refresh sessions from the platform */
  @Post('refreshes')
  @HttpCode(202)
  @Scopes('sessions:write')
  async refresh(@Body() dto: RefreshRequest): Promise<RefreshesResponse> {
    return { sessions: await this.updates.refresh(dto) };
  }

  /** Count the sessions that wait to be fetched */
  @Get('refreshes')
  @Unaudited()
  @Scopes('sessions:read')
  async pending(@Query() { session }: PendingQuery): Promise<PendingRefreshesResponse> {
    return this.refreshes.pending(session === undefined ? undefined : (await this.reader.find(session)).id);
  }

  /** Get a session, by our id or the platform's */
  @Get(':id')
  @Scopes('sessions:read')
  async show(@Param('id') id: string): Promise<SessionResponse> {
    return this.reader.show(id);
  }

  /**
   * List the timeline of a session, newest first
   *
   * @remarks Webhook events, the EHR's request and versions of notes, without their content. Events are deleted with
   * their deliveries.
   */
  @Get(':id/timeline')
  @Scopes('sessions:read')
  async happened(@Param('id') id: string, @Query() query: PageQuery): Promise<TimelinePageResponse> {
    return this.timeline.page(id, query);
  }

  /**
   * Update the sources of a session's notes
   *
   * @remarks Absent, null and blank fields stay unchanged; at least one field is required.
   */
  @Patch(':id')
  @Scopes('sessions:write')
  @RouteOptions({ bodyLimit: SESSION_BODY_LIMIT })
  @ApiBody({ type: UpdateSessionRequest, examples: UPDATE_EXAMPLES })
  @ApiOkResponse({ type: SessionResponse })
  async update(@Param('id') id: string, @Body() dto: UpdateSessionRequest): Promise<SessionResponse> {
    return this.updates.update(id, dto);
  }

  /**
   * Add or reprocess note templates; PATCH the session instead
   *
   * @deprecated
   */
  @Put(':id/note-templates')
  @Scopes('sessions:write')
  async updateNoteTemplates(
    @Param('id') id: string,
    @Body() { noteTemplateIds }: NoteTemplatesRequest,
  ): Promise<SessionResponse> {
    return this.updates.updateNoteTemplates(id, noteTemplateIds);
  }

  /**
   * Resolve a request with unknown outcome
   *
   * @remarks `link`: names its session on the platform. `create`: sends it again. `abandon`: ends it.
   */
  @Post(':id/resolve')
  @HttpCode(200)
  @Scopes('sessions:write')
  @ApiOkResponse({ type: SessionResponse })
  async resolve(
    @Param('id') id: string,
    @Body() dto: ResolveSessionRequest,
    @PreferWait(CREATE_WAIT_SECONDS) wait: Wait,
  ): Promise<SessionResponse> {
    return this.requests.resolve(id, dto, wait);
  }

  /** Get the notes of a session: JSON, Markdown or FHIR */
  @Get(':id/notes')
  @Scopes('notes:read')
  @Header('Vary', 'Accept')
  @ApiExtraModels(NotesResponse)
  @ApiOkResponse({ description: 'The notes in the format of Accept', content: NOTE_CONTENT })
  async notes(
    @Caller() caller: Principal,
    @Param('id') id: string,
    @Headers('accept') accept: string | undefined,
    @Res({ passthrough: true }) reply: FastifyReply,
  ): Promise<object | string> {
    const format = preferredType(accept, NOTE_FORMATS);
    if (!format) throw new Problem('not-acceptable', `Notes are available as ${NOTE_FORMATS.join(', ')}.`);
    const { session, notes } = await this.reader.notes(id);
    reply.type(`${format}; charset=utf-8`);
    if (format === 'text/markdown') return notesAsMarkdown(notes);
    if (format === 'application/json') return notes;
    return notesAsFhir(this.visibility.ofModel(SessionResponse, caller, session), notes, this.clock.now());
  }

  /** List the fetched versions of one document, newest first */
  @Get(':id/notes/:documentId/revisions')
  @Scopes('notes:read')
  async revisions(
    @Param('id') id: string,
    @Param('documentId') documentId: string,
    @Query() query: PageQuery,
  ): Promise<RevisionsResponse> {
    return this.reader.revisions(id, documentId, query);
  }

  /**
   * Get the transcript as the platform returned it
   *
   * @remarks Utterances with their words and speakers. `speakers` adds the EHR's ids.
   */
  @Get(':id/transcript')
  @Scopes('notes:read')
  @ApiOkResponse({ schema: TRANSCRIPT })
  async transcript(@Param('id') id: string): Promise<object> {
    return this.speakers.transcript(id);
  }

  /**
   * Get topics, named entities and analytics from the platform
   *
   * @remarks `people` adds the EHR's ids.
   */
  @Get(':id/insights')
  @Scopes('notes:read')
  @ApiOkResponse({ schema: INSIGHTS })
  async insights(@Param('id') id: string): Promise<object> {
    return this.speakers.insights(id);
  }

  /**
   * Get a URL of the recording that is valid for a limited time
   *
   * @remarks It is requested from the platform now, and not stored.
   */
  @Get(':id/recording-url')
  @Scopes('notes:read')
  async recordingUrl(@Param('id') id: string, @ClientDisconnect() signal: AbortSignal): Promise<RecordingUrlResponse> {
    return { url: await this.reader.recordingUrl(id, signal) };
  }
}
