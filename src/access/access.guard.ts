import { type CanActivate, type ExecutionContext, Injectable } from '@nestjs/common';
import { Reflector } from '@nestjs/core';
import type { FastifyRequest } from 'fastify';
import { Problem } from '../http/problem.js';
import { bearerToken } from './api-key.js';
import { ApiKeys } from './api-keys.js';
import { Audit } from './audit.js';
import { routeOf, subjectsOf } from './audited-call.js';
import { PUBLIC_ROUTE, ROUTE_SCOPES, type Scope } from './scopes.js';

/** Lets nobody in without a key, and nobody further than the key's scopes; `@Public()` opens a route. */
@Injectable()
export class AccessGuard implements CanActivate {
  constructor(
    private readonly reflector: Reflector,
    private readonly keys: ApiKeys,
    private readonly audit: Audit,
  ) {}

  canActivate(context: ExecutionContext): boolean | Promise<boolean> {
    const places = [context.getHandler(), context.getClass()];
    if (this.reflector.getAllAndOverride<boolean>(PUBLIC_ROUTE, places)) return true;
    const needed = this.reflector.getAllAndOverride<Scope[]>(ROUTE_SCOPES, places) ?? ['admin'];
    return this.admit(context, needed);
  }

  private async admit(context: ExecutionContext, needed: readonly Scope[]): Promise<boolean> {
    const request = context.switchToHttp().getRequest<FastifyRequest>();
    const token = bearerToken(request.headers.authorization);
    const principal = token === undefined ? undefined : await this.keys.recognise(token);
    if (!principal) throw unauthenticated(token !== undefined);

    const missing = needed.find((scope) => !principal.scopes.has(scope));
    if (missing) {
      const call = { action: routeOf(request), subjects: subjectsOf(request.params, undefined) };
      await this.audit.tryRecord({ by: principal, ...call, outcome: 'forbidden-scope' });
      throw new Problem(403, 'forbidden-scope', `This key lacks the scope ${missing}; use one that has it.`, {
        extensions: { scope: missing },
        headers: { 'www-authenticate': `Bearer realm="notebridge", error="insufficient_scope", scope="${missing}"` },
      });
    }
    request.principal = principal;
    return true;
  }
}

/** The challenge of RFC 6750 §3: without an error code for a caller who showed no key at all. */
function unauthenticated(shown: boolean): Problem {
  const detail = shown
    ? 'The key is not known or was revoked; ask an administrator for another.'
    : 'Send a key as Authorization: Bearer <key>.';
  return new Problem(401, 'unauthenticated', detail, {
    headers: { 'www-authenticate': `Bearer realm="notebridge"${shown ? ', error="invalid_token"' : ''}` },
  });
}
