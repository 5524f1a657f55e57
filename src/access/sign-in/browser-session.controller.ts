import { Body, Controller, Delete, Get, HttpCode, Post, Query, Req, Res } from '@nestjs/common';
import { ApiTags } from '@nestjs/swagger';
import type { FastifyReply, FastifyRequest } from 'fastify';
import { Unaudited } from '../../audit/audit.interceptor.js';
import { Env } from '../../config/env.js';
import { Problem } from '../../http/problem/problem.js';
import { PageQuery } from '../../http/request/page.js';
import { UuidParam } from '../../http/request/uuid-param.js';
import { Caller, type Principal, Scopes } from '../identity/scopes.js';
import { bearerToken } from '../keys/key-format.js';
import { BrowserSessionResponse, ListedSessionPageResponse, StepUpRequest } from './browser-session.dto.js';
import { BrowserSessionsService, noSession } from './browser-sessions.service.js';
import { csrfTokenOf, sessionCookie, sessionToken } from './session-cookie.js';

/** Browsers that are signed in to the console. */
@ApiTags('access')
@Scopes()
@Controller('v1')
export class BrowserSessionController {
  constructor(
    private readonly sessions: BrowserSessionsService,
    private readonly env: Env,
  ) {}

  /** Sign in with a key and get a session cookie */
  @Post('browser-session')
  async open(
    @Req() { headers }: FastifyRequest,
    @Caller() by: Principal,
    @Res({ passthrough: true }) reply: FastifyReply,
  ): Promise<BrowserSessionResponse> {
    const key = bearerToken(headers.authorization);
    if (key === undefined) throw new Problem('key-needed', 'Signing in needs a key as Authorization: Bearer <key>.');
    if (!this.env.allowsKeySignIn)
      throw new Problem('key-sign-in-off', 'Sign-in with keys is off. Sign in at /v1/sign-in.');
    const token = await this.sessions.open({ by, key });
    reply.header('set-cookie', sessionCookie(token));
    return this.view(token);
  }

  /** Get the session of this browser */
  @Get('browser-session')
  @Unaudited()
  read(@Req() { headers }: FastifyRequest, @Caller() by: Principal): Promise<BrowserSessionResponse> {
    const token = sessionToken(headers.cookie);
    if (token === undefined) throw noSession();
    return this.view(token, by);
  }

  /** End the session of this browser */
  @Delete('browser-session')
  @HttpCode(204)
  async close(@Caller() by: Principal, @Res({ passthrough: true }) reply: FastifyReply): Promise<void> {
    if (by.session) await this.sessions.end(by.session.id, by, false);
    reply.header('set-cookie', sessionCookie(undefined));
  }

  /**
   * Confirm a session with its key again, as some operations require
   *
   * @remarks People sign in again at /v1/sign-in?fresh=true instead.
   */
  @Post('browser-session/step-up')
  @HttpCode(200)
  async confirm(
    @Body() { key }: StepUpRequest,
    @Caller() by: Principal,
    @Res({ passthrough: true }) reply: FastifyReply,
  ): Promise<BrowserSessionResponse> {
    const token = await this.sessions.confirm(by, key);
    reply.header('set-cookie', sessionCookie(token));
    return this.view(token);
  }

  /**
   * List signed-in browsers, newest first
   *
   * @remarks Your own sessions, or with the scope `admin` all.
   */
  @Get('browser-sessions')
  list(@Query() { limit, cursor }: PageQuery, @Caller() by: Principal): Promise<ListedSessionPageResponse> {
    return this.sessions.list(by, by.scopes.has('admin'), limit, cursor);
  }

  /** End a session immediately; another person's needs the scope `admin` */
  @Delete('browser-sessions/:id')
  @HttpCode(204)
  end(@UuidParam() id: string, @Caller() by: Principal): Promise<void> {
    return this.sessions.end(id, by, by.scopes.has('admin'));
  }

  private async view(token: string, known?: Principal): Promise<BrowserSessionResponse> {
    const by = known ?? (await this.sessions.recognise(token, false));
    if (!by?.session) throw noSession();
    const { id, name, issuer = null, scopes, session } = by;
    return {
      caller: { id, name, issuer, scopes: [...scopes] },
      csrfToken: csrfTokenOf(token),
      expiresAt: session.endsAt,
      idleMinutes: this.env.SESSION_IDLE_MINUTES,
      authenticatedAt: session.authenticatedAt,
    };
  }
}
