import { type CustomDecorator, createParamDecorator, type ExecutionContext, SetMetadata } from '@nestjs/common';
import type { Reflector } from '@nestjs/core';
import type { FastifyRequest } from 'fastify';
import type { Actor } from '../../audit/audit-record.js';
import type { Scope } from './scope.js';

/** Metadata keys of the decorators below. */
const PUBLIC_ROUTE = Symbol('notebridge:public');
const ROUTE_SCOPES = Symbol('notebridge:scopes');

/** Opens a route, or all routes of a controller, to callers without a key. */
export function Public(): CustomDecorator<symbol> {
  return SetMetadata(PUBLIC_ROUTE, true);
}

/** Requires all of these scopes; without any, every key is accepted. A route without a decorator requires `admin`. */
export function Scopes(...scopes: Scope[]): CustomDecorator<symbol> {
  return SetMetadata(ROUTE_SCOPES, scopes);
}

/** A handler or a controller. */
type Decorated = Parameters<Reflector['get']>[1];

/** The scopes that a caller needs, all of them; `public` needs no key. */
export type AccessRequirement = readonly Scope[] | 'public';

/** Determines the scopes that a handler requires. Its own decorators take precedence over its controller's. */
export function neededScopes(reflector: Reflector, handler: Decorated, controller: Decorated): AccessRequirement {
  const places = [handler, controller];
  if (reflector.getAllAndOverride<boolean>(PUBLIC_ROUTE, places)) return 'public';
  return reflector.getAllAndOverride<Scope[]>(ROUTE_SCOPES, places) ?? ['admin'];
}

interface BrowserSession {
  readonly id: string;
  readonly endsAt: Date;
  readonly authenticatedAt: Date | null;
  /** True if the last sign-in, or step-up, is recent enough for handlers with `@StepUp()`. */
  readonly isConfirmed: boolean;
}

/** The authenticated caller of a request. */
export interface Principal extends Actor {
  scopes: ReadonlySet<Scope>;
  /** The browser session; undefined for a caller that showed its key. */
  session?: BrowserSession;
}

declare module 'fastify' {
  interface FastifyRequest {
    /** Set by the guard on every route that is not public. */
    principal?: Principal;
  }
}

/** Injects the caller; the route must not be public. */
export const Caller = createParamDecorator((_: unknown, context: ExecutionContext): Principal => {
  const { principal } = context.switchToHttp().getRequest<FastifyRequest>();
  if (!principal) throw new TypeError('@Caller() was used on a public route');
  return principal;
});
