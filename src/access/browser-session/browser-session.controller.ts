import { Controller, Delete, Get, HttpCode, Post, Req, Res } from '@nestjs/common';
import { ApiTags } from '@nestjs/swagger';
import type { FastifyReply, FastifyRequest } from 'fastify';
import { Problems } from '../../http/problem/described-problems.js';
import { Problem } from '../../http/problem/problem.js';
import { Unaudited } from '../audit/audit.interceptor.js';
import { Caller, type Principal, Scopes } from '../identity/scopes.js';
import { bearerToken } from '../keys/key-format.js';
import { BrowserSessionResponse } from './browser-session.dto.js';
import { BrowserSessions } from './browser-sessions.js';
import { csrfTokenOf, sessionCookie, sessionToken } from './session-cookie.js';

/** Signing in to the console. */
@ApiTags('access')
@Scopes()
@Controller('v1/browser-session')
export class BrowserSessionController {
  constructor(private readonly sessions: BrowserSessions) {}

  /** Exchanges a key for a cookie by which a browser acts as that key */
  @Post()
  @Problems({ 400: ['key-needed'] })
  async open(
    @Req() { headers }: FastifyRequest,
    @Caller() caller: Principal,
    @Res({ passthrough: true }) reply: FastifyReply,
  ): Promise<BrowserSessionResponse> {
    const key = bearerToken(headers.authorization);
    if (key === undefined)
      throw new Problem(400, 'key-needed', 'Signing in needs a key as Authorization: Bearer <key>.');
    const { token, expiresAt } = await this.sessions.open(key, caller);
    reply.header('set-cookie', sessionCookie(token));
    return view(caller, token, expiresAt);
  }

  /** Who is signed in to this browser */
  @Get()
  @Problems({ 404: ['no-browser-session'] })
  @Unaudited()
  read(@Req() { headers }: FastifyRequest, @Caller() caller: Principal): BrowserSessionResponse {
    const token = sessionToken(headers.cookie);
    if (token === undefined || !caller.session)
      throw new Problem(404, 'no-browser-session', 'The caller showed a key and has no session; POST opens one.');
    return view(caller, token, caller.session.endsAt);
  }

  /** Ends the session */
  @Delete()
  @HttpCode(204)
  async close(
    @Req() request: FastifyRequest,
    @Caller() caller: Principal,
    @Res({ passthrough: true }) reply: FastifyReply,
  ): Promise<void> {
    await this.sessions.close(request, caller);
    reply.header('set-cookie', sessionCookie(undefined));
  }
}

function view({ id, name, scopes }: Principal, token: string, expiresAt: Date): BrowserSessionResponse {
  return { key: { id, name, scopes: [...scopes] }, csrfToken: csrfTokenOf(token), expiresAt };
}
