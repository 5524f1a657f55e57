import { Body, Controller, HttpCode, Param, Post, Res } from '@nestjs/common';
import { ApiAcceptedResponse, ApiBody, ApiCreatedResponse, ApiOkResponse, ApiTags } from '@nestjs/swagger';
import type { FastifyReply } from 'fastify';
import { CreationId, Idempotent } from '../../access/idempotency/idempotency.interceptor.js';
import { Scopes } from '../../access/identity/scopes.js';
import { RouteOptions } from '../../http/request/route-options.js';
import { ClientDisconnect, PreferWait } from '../../http/request/waiting.js';
import { SessionResponse } from '../read/session-view.js';
import { CREATE_EXAMPLES } from './create-examples.js';
import { CreateSessionRequest, ResolveSessionRequest, SESSION_BODY_LIMIT } from './create-session.dto.js';
import { SessionRequests } from './session-requests.js';

/** Seconds that a create waits for the platform's id when the caller says nothing (`Prefer: wait`). */
const CREATE_WAIT_SECONDS = 10;

/** Sessions that the EHR asks for. */
@ApiTags('sessions')
@Controller('v1/sessions')
@Scopes('sessions:write')
export class SessionRequestsController {
  constructor(private readonly requests: SessionRequests) {}

  /**
   * Asks for a session of notes from a text or from recordings
   *
   * @remarks 201 once the platform's id is known, 202 while it is not. Without `Prefer: wait` the answer waits up to
   * ten seconds for it.
   */
  @Post()
  @HttpCode(201)
  @RouteOptions({ bodyLimit: SESSION_BODY_LIMIT })
  @Idempotent()
  @ApiBody({ type: CreateSessionRequest, examples: CREATE_EXAMPLES })
  @ApiCreatedResponse({ type: SessionResponse })
  @ApiAcceptedResponse({ type: SessionResponse, description: 'Kept and shown as Requested or Unknown' })
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

  /**
   * Says what became of a request that got no answer
   *
   * @remarks `link`: it is this session of the platform. `create`: it is sent again. `abandon`: it is given up.
   */
  @Post(':id/resolve')
  @HttpCode(200)
  @ApiOkResponse({ type: SessionResponse })
  async resolve(
    @Param('id') id: string,
    @Body() dto: ResolveSessionRequest,
    @PreferWait(CREATE_WAIT_SECONDS) seconds: number,
    @ClientDisconnect() signal: AbortSignal,
  ): Promise<SessionResponse> {
    return this.requests.resolve(id, dto, { seconds, signal });
  }
}
