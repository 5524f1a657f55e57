import { type CallHandler, type ExecutionContext, Injectable, type NestInterceptor, SetMetadata } from '@nestjs/common';
import { Reflector } from '@nestjs/core';
import type { FastifyRequest } from 'fastify';
import { catchError, map, type Observable } from 'rxjs';
import { Problem } from '../../http/problem/problem.js';
import type { Scope } from '../identity/scope.js';

/** Who may read clinical text, and the platform's own words, which may hold some, wherever they stand. */
const TEXT_SCOPE: Scope = 'notes:read';

const WITHOUT_TEXT = Symbol('notebridge:without-text');

/** What the route answers with, or each item of its page, for a key that may not read clinical text. */
export const WithoutText = <T extends object>(hide: (shown: T) => T): MethodDecorator =>
  SetMetadata(WITHOUT_TEXT, hide);

/** Keeps clinical text and the platform's words from keys that lack their scope. */
@Injectable()
export class ClinicalTextInterceptor implements NestInterceptor {
  constructor(private readonly reflector: Reflector) {}

  intercept(context: ExecutionContext, next: CallHandler): Observable<unknown> {
    const { principal } = context.switchToHttp().getRequest<FastifyRequest>();
    if (!principal || principal.scopes.has(TEXT_SCOPE)) return next.handle();
    const hide = this.reflector.get<((shown: object) => object) | undefined>(WITHOUT_TEXT, context.getHandler());
    return next.handle().pipe(
      map((answer: unknown) => (hide && answer instanceof Object ? hideIn(answer, hide) : answer)),
      catchError((error: unknown) => {
        throw error instanceof Problem ? withoutPlatformMessage(error) : error;
      }),
    );
  }
}

function hideIn(answer: object, hide: (shown: object) => object): object {
  if (!('items' in answer && Array.isArray(answer.items))) return hide(answer);
  return { ...answer, items: answer.items.map(hide) };
}

function withoutPlatformMessage(problem: Problem): Problem {
  const { status, type, detail, more } = problem;
  if (more.extensions?.platformMessage === undefined) return problem;
  return new Problem(status, type, detail, { ...more, extensions: { ...more.extensions, platformMessage: null } });
}
