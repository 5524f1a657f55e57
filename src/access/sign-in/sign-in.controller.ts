import { Controller, Get, Req, Res } from '@nestjs/common';
import { ApiExcludeEndpoint, ApiTags } from '@nestjs/swagger';
import type { FastifyReply, FastifyRequest } from 'fastify';
import { Audit } from '../../audit/audit.js';
import { recordOf } from '../../audit/audit-record.js';
import { Env } from '../../config/env.js';
import { Public } from '../identity/scopes.js';
import { SignInMethodsResponse } from './browser-session.dto.js';
import { BrowserSessionsService } from './browser-sessions.service.js';
import { OpenIdConnect, SignInRefused } from './openid-connect.js';
import { pendingCookie, sessionCookie, sessionToken } from './session-cookie.js';

/**
 * Sign-in of people: leads a browser to the OpenID provider and back to the console. A browser sends no cookie with
 * SameSite=Strict on that way, and the console's page needs none.
 */
@ApiTags('access')
@Public()
@Controller('v1/sign-in')
export class SignInController {
  constructor(
    private readonly oidc: OpenIdConnect,
    private readonly sessions: BrowserSessionsService,
    private readonly audit: Audit,
    private readonly env: Env,
  ) {}

  /** List the ways in which a browser can sign in */
  @Get('methods')
  methods(): SignInMethodsResponse {
    return { key: this.env.allowsKeySignIn, provider: this.oidc.provider };
  }

  @Get()
  @ApiExcludeEndpoint()
  async start(@Req() request: FastifyRequest, @Res() reply: FastifyReply): Promise<void> {
    const token = sessionToken(request.headers.cookie);
    try {
      const caller = token === undefined ? undefined : await this.sessions.recognise(token, false);
      const { url, cookie } = await this.oidc.start(request, caller?.session?.id);
      reply.header('set-cookie', cookie).redirect(url, 302);
    } catch (error) {
      await this.refuse(error, request, reply);
    }
  }

  @Get('callback')
  @ApiExcludeEndpoint()
  async complete(@Req() request: FastifyRequest, @Res() reply: FastifyReply): Promise<void> {
    reply.header('set-cookie', pendingCookie(undefined));
    try {
      const { returnTo, ...signIn } = await this.oidc.complete(request);
      const record = recordOf(signIn.by, request);
      const token = await this.audit.run(record, () => this.sessions.open(signIn));
      reply.header('set-cookie', sessionCookie(token)).redirect(returnTo, 302);
    } catch (error) {
      await this.refuse(error, request, reply);
    }
  }

  private async refuse(error: unknown, request: FastifyRequest, reply: FastifyReply): Promise<void> {
    if (!(error instanceof SignInRefused)) throw error;
    if (error.person) await this.audit.deny(error.person, request, error.code);
    reply.redirect(`/console/sign-in?refused=${error.code}`, 302);
  }
}
