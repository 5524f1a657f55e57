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
import { Unaudited } from '../access/audit/audit.interceptor.js';
import { WithoutText } from '../access/guard/clinical-text.interceptor.js';
import { CreationId, Idempotent } from '../access/idempotency/idempotency.interceptor.js';
import { Scopes } from '../access/identity/scopes.js';
import { Clock } from '../config/clock.js';
import { Problems, type ProblemTypes } from '../http/problem/described-problems.js';
import { Problem } from '../http/problem/problem.js';
import { PageQuery } from '../http/request/page.js';
import { RouteOptions } from '../http/request/route-options.js';
import { ClientDisconnect, PreferWait } from '../http/request/waiting.js';
import { PARTY_PROBLEMS } from '../people/store/resolved-parties.js';
import { NOT_CONFIGURED, PLATFORM_PROBLEMS } from '../platform/contract/platform-errors.js';
import {
  CREATE_EXAMPLES,
  CreateSessionRequest,
  ResolveSessionRequest,
  SESSION_BODY_LIMIT,
} from './create/create-session.dto.js';
import { SessionRequests } from './create/session-requests.js';
import {
  NotesResponse,
  PendingRefreshesResponse,
  RecordingUrlResponse,
  RefreshesResponse,
  RevisionsResponse,
  SessionPageResponse,
  SessionResponse,
  sessionWithoutText,
} from './model/session-view.js';
import { INSIGHTS, TRANSCRIPT } from './read/insights-schema.js';
import { chooseFormat, NOTE_CONTENT, NOTE_FORMATS } from './read/note-formats.js';
import { notesAsFhir } from './read/notes-fhir.js';
import { notesAsMarkdown } from './read/notes-markdown.js';
import { SessionReader } from './read/session-reader.js';
import { SessionTimeline } from './read/session-timeline.js';
import { PendingQuery, RefreshRequest, SessionsQuery } from './read/sessions.dto.js';
import { TimelinePageResponse } from './read/timeline.dto.js';
import { WantedRefreshes } from './refresh/wanted-refreshes.repository.js';
import { SessionUpdates } from './update/session-updates.js';
import { NoteTemplatesRequest, UPDATE_EXAMPLES, UpdateSessionRequest } from './update/update-session.dto.js';

/** Seconds that a create waits for the platform's id when the caller says nothing (`Prefer: wait`). */
const CREATE_WAIT_SECONDS = 10;

const UNKNOWN_SESSION: ProblemTypes = { 404: ['unknown-session'] };

/** Sessions as the EHR reads and changes them, or asks for them; `{id}` is ours or the platform's. */
@ApiTags('sessions')
@Controller('v1/sessions')
export class SessionsController {
  constructor(
    private readonly reader: SessionReader,
    private readonly timeline: SessionTimeline,
    private readonly wanted: WantedRefreshes,
    private readonly requests: SessionRequests,
    private readonly updates: SessionUpdates,
    private readonly clock: Clock,
  ) {}

  /** Sessions in the order of their last change, the oldest first unless said */
  @Get()
  @Scopes('sessions:read')
  @Problems({ 400: ['bad-cursor'] })
  @WithoutText(sessionWithoutText)
  async list(@Query() query: SessionsQuery): Promise<SessionPageResponse> {
    return this.reader.list(query);
  }

  /**
   * Asks for a session of notes from a text or from recordings
   *
   * @remarks 201 once the platform's id is known, 202 while it is not. Without `Prefer: wait` the answer waits up to
   * ten seconds for it.
   */
  @Post()
  @HttpCode(201)
  @Scopes('sessions:write')
  @RouteOptions({ bodyLimit: SESSION_BODY_LIMIT })
  @Idempotent()
  @Problems(NOT_CONFIGURED, PARTY_PROBLEMS, {
    400: ['abandoned', 'platform-rejected'],
    409: ['session-unsettled'],
    422: ['url-not-allowed'],
  })
  @ApiBody({ type: CreateSessionRequest, examples: CREATE_EXAMPLES })
  @ApiCreatedResponse({ type: SessionResponse })
  @ApiAcceptedResponse({ type: SessionResponse, description: 'Kept and shown as Requested or Unknown' })
  @WithoutText(sessionWithoutText)
  async create(
    @CreationId() id: string,
    @Body() dto: CreateSessionRequest,
    @PreferWait(CREATE_WAIT_SECONDS) seconds: number,
    @ClientDisconnect() signal: AbortSignal,
    @Res({ passthrough: true }) reply: FastifyReply,
  ): Promise<SessionResponse> {
    const session = await this.requests.create(id, dto, { seconds, signal });
    reply.header('location', `/v1/sessions/${session.id}`).code(session.sessionId === null ? 202 : 201);
    return session;
  }

  /** Makes sessions due; they are fetched one after the other */
  @Post('refreshes')
  @HttpCode(202)
  @Scopes('sessions:write')
  @Problems(NOT_CONFIGURED, UNKNOWN_SESSION)
  async refresh(@Body() dto: RefreshRequest): Promise<RefreshesResponse> {
    return { sessions: await this.updates.refresh(dto) };
  }

  /** How many sessions, or whether one, still wait to be fetched */
  @Get('refreshes')
  @Unaudited()
  @Scopes('sessions:read')
  async pending(@Query() { session }: PendingQuery): Promise<PendingRefreshesResponse> {
    return this.wanted.countWanted(session);
  }

  /** One session, by our id or the platform's */
  @Get(':id')
  @Scopes('sessions:read')
  @Problems(UNKNOWN_SESSION)
  @WithoutText(sessionWithoutText)
  async show(@Param('id') id: string): Promise<SessionResponse> {
    return this.reader.show(id);
  }

  /**
   * What happened to a session, newest first
   *
   * @remarks Webhook events, the EHR's request and versions of notes, without their content. Events are deleted with
   * their deliveries.
   */
  @Get(':id/timeline')
  @Scopes('sessions:read')
  @Problems(UNKNOWN_SESSION, { 400: ['bad-cursor'] })
  async happened(@Param('id') id: string, @Query() query: PageQuery): Promise<TimelinePageResponse> {
    return this.timeline.page(id, query);
  }

  /**
   * Changes what the notes are made from
   *
   * @remarks What is absent, null or blank stays as it is; at least one field must say something.
   */
  @Patch(':id')
  @HttpCode(200)
  @Scopes('sessions:write')
  @RouteOptions({ bodyLimit: SESSION_BODY_LIMIT })
  @Problems(PLATFORM_PROBLEMS, UNKNOWN_SESSION, { 409: ['no-session-yet'] })
  @ApiBody({ type: UpdateSessionRequest, examples: UPDATE_EXAMPLES })
  @ApiOkResponse({ type: SessionResponse })
  @WithoutText(sessionWithoutText)
  async update(@Param('id') id: string, @Body() dto: UpdateSessionRequest): Promise<SessionResponse> {
    return this.updates.update(id, dto);
  }

  /**
   * Adds or reprocesses note templates; PATCH the session instead
   *
   * @deprecated
   */
  @Put(':id/note-templates')
  @HttpCode(200)
  @Scopes('sessions:write')
  @Problems(PLATFORM_PROBLEMS, UNKNOWN_SESSION, { 409: ['no-session-yet'] })
  @WithoutText(sessionWithoutText)
  async updateNoteTemplates(
    @Param('id') id: string,
    @Body() { noteTemplateIds }: NoteTemplatesRequest,
  ): Promise<SessionResponse> {
    return this.updates.updateNoteTemplates(id, noteTemplateIds);
  }

  /**
   * Says what became of a request that got no answer
   *
   * @remarks `link`: it is this session of the platform. `create`: it is sent again. `abandon`: it is given up.
   */
  @Post(':id/resolve')
  @HttpCode(200)
  @Scopes('sessions:write')
  @Problems(UNKNOWN_SESSION, {
    400: ['abandoned', 'platform-rejected'],
    409: ['session-taken', 'wrong-state'],
    422: ['not-on-platform', 'other-provider', 'session-id-needed'],
    503: ['platform-unreachable'],
  })
  @ApiOkResponse({ type: SessionResponse })
  @WithoutText(sessionWithoutText)
  async resolve(
    @Param('id') id: string,
    @Body() dto: ResolveSessionRequest,
    @PreferWait(CREATE_WAIT_SECONDS) seconds: number,
    @ClientDisconnect() signal: AbortSignal,
  ): Promise<SessionResponse> {
    return this.requests.resolve(id, dto, { seconds, signal });
  }

  /** The notes of a session: JSON, Markdown or FHIR */
  @Get(':id/notes')
  @Scopes('notes:read')
  @Header('Vary', 'Accept')
  @Problems(UNKNOWN_SESSION, { 406: ['not-acceptable'] })
  @ApiExtraModels(NotesResponse)
  @ApiOkResponse({ description: 'The notes, as Accept asks', content: NOTE_CONTENT })
  async notes(
    @Param('id') id: string,
    @Headers('accept') accept: string | undefined,
    @Res({ passthrough: true }) reply: FastifyReply,
  ): Promise<object | string> {
    const format = chooseFormat(accept);
    if (!format) throw new Problem(406, 'not-acceptable', `Notes are given out as ${NOTE_FORMATS.join(', ')}.`);
    const { session, notes } = await this.reader.notes(id);
    reply.type(`${format}; charset=utf-8`);
    if (format === 'text/markdown') return notesAsMarkdown(notes);
    return format === 'application/json' ? notes : notesAsFhir(session, notes, this.clock.now());
  }

  /** The versions of one document that were fetched, the newest first */
  @Get(':id/notes/:documentId/revisions')
  @Scopes('notes:read')
  @Problems(UNKNOWN_SESSION, { 400: ['bad-cursor'], 404: ['unknown-document'] })
  async revisions(
    @Param('id') id: string,
    @Param('documentId') documentId: string,
    @Query() query: PageQuery,
  ): Promise<RevisionsResponse> {
    return this.reader.revisions(id, documentId, query);
  }

  /**
   * The transcript as the platform gave it
   *
   * @remarks Utterances with their words, and who spoke.
   */
  @Get(':id/transcript')
  @Scopes('notes:read')
  @Problems(UNKNOWN_SESSION, { 404: ['no-transcript'], 410: ['transcript-removed'] })
  @ApiOkResponse({ schema: TRANSCRIPT })
  async transcript(@Param('id') id: string): Promise<unknown> {
    return this.reader.transcript(id);
  }

  /** Topics, named entities and analytics as the platform gave them */
  @Get(':id/insights')
  @Scopes('notes:read')
  @Problems(UNKNOWN_SESSION)
  @ApiOkResponse({ schema: INSIGHTS })
  async insights(@Param('id') id: string): Promise<object> {
    return this.reader.insights(id);
  }

  /**
   * An address of the recording that is valid for a limited time
   *
   * @remarks It is asked for now, and not stored.
   */
  @Get(':id/recording-url')
  @Scopes('notes:read')
  @Problems(PLATFORM_PROBLEMS, UNKNOWN_SESSION, { 404: ['no-recording'] })
  async recordingUrl(@Param('id') id: string, @ClientDisconnect() signal: AbortSignal): Promise<RecordingUrlResponse> {
    return { url: await this.reader.recordingUrl(id, signal) };
  }
}
