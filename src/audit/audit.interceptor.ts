import { type CallHandler, type ExecutionContext, Injectable, type NestInterceptor, SetMetadata } from '@nestjs/common';
import { Reflector } from '@nestjs/core';
import type { FastifyRequest } from 'fastify';
import { catchError, mergeMap, type Observable } from 'rxjs';
import { problemOf } from '../http/problem/fault.js';
import { Audit, AuditUnavailable } from './audit.js';
import { recordOf } from './audit-record.js';

declare module 'fastify' {
  interface FastifyRequest {
    /** Set if this interceptor writes its audit entry. Requests rejected earlier are recorded where they are rejected. */
    reachedHandler?: boolean;
  }
}

const UNAUDITED = Symbol('notebridge:unaudited');

/** The route leaves no entries, because it shows only settings or numbers. */
export const Unaudited = (): MethodDecorator => SetMetadata(UNAUDITED, true);

/**
 * Stores one entry for each request of a known caller, regardless of its outcome, before the answer. A change stores it
 * in its own transaction, a stream before its first byte.
 */
@Injectable()
export class AuditInterceptor implements NestInterceptor {
  constructor(
    private readonly reflector: Reflector,
    private readonly audit: Audit,
  ) {}

  intercept(context: ExecutionContext, next: CallHandler): Observable<unknown> {
    const request = context.switchToHttp().getRequest<FastifyRequest>();
    request.reachedHandler = true;
    const by = request.principal;
    if (!by || this.reflector.get<boolean>(UNAUDITED, context.getHandler())) return next.handle();

    const record = recordOf(by, request);
    // Nest binds the handler to the asynchronous context in which it is asked for.
    const answer = this.audit.run(record, () => next.handle());
    return answer.pipe(
      mergeMap(async (result: unknown) => {
        await this.audit.commitRecord(record);
        return result;
      }),
      catchError(async (error: unknown) => {
        if (error instanceof AuditUnavailable) throw error;
        const problem = problemOf(error);
        const isOnRecord = record.stored !== 'no';
        const failed = this.audit.failed(record, request, problem?.type ?? 'internal-error');
        const stored = isOnRecord ? this.audit.commitRecord(failed) : this.audit.commitRefusal(failed);
        await stored.catch((unavailable: unknown) => {
          throw isOnRecord || problem?.status === 503 ? error : unavailable;
        });
        throw error;
      }),
    );
  }
}
