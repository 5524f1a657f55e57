import { createParamDecorator, type ExecutionContext } from '@nestjs/common';
import type { FastifyRequest } from 'fastify';
import type { Scope } from './scopes.js';

/** Who is calling. */
export interface Principal {
  /** Id of the API key, or `admin` for ADMIN_API_KEY. */
  id: string;
  name: string;
  scopes: ReadonlySet<Scope>;
}

declare module 'fastify' {
  interface FastifyRequest {
    /** Set by the guard on every route that is not public. */
    principal?: Principal;
  }
}

/** Injects who is calling; the route must not be public. */
export const Caller = createParamDecorator((_: unknown, context: ExecutionContext): Principal => {
  const { principal } = context.switchToHttp().getRequest<FastifyRequest>();
  if (!principal) throw new TypeError('@Caller() was used on a public route');
  return principal;
});
