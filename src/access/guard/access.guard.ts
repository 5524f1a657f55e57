import { type CanActivate, type ExecutionContext, Injectable } from '@nestjs/common';
import { Reflector } from '@nestjs/core';
import type { FastifyRequest } from 'fastify';
import { neededScopes } from '../identity/scopes.js';
import { Admission } from './admission.js';

/**
 * Lets nobody to a handler without a key and its scopes. The gate at the headers has judged already; here the handler's
 * own decorators have the last word, so that a route that the gate does not know stays shut.
 */
@Injectable()
export class AccessGuard implements CanActivate {
  constructor(
    private readonly reflector: Reflector,
    private readonly admission: Admission,
  ) {}

  async canActivate(context: ExecutionContext): Promise<boolean> {
    const needed = neededScopes(this.reflector, context.getHandler(), context.getClass());
    if (needed !== 'public') await this.admission.check(context.switchToHttp().getRequest<FastifyRequest>(), needed);
    return true;
  }
}
