import { type CallHandler, type ExecutionContext, Injectable, type NestInterceptor, SetMetadata } from '@nestjs/common';
import { Reflector } from '@nestjs/core';
import type { FastifyReply, FastifyRequest } from 'fastify';
import { catchError, mergeMap, type Observable } from 'rxjs';
import { problemOf } from '../../http/problem/fault.js';
import type { Principal } from '../identity/scopes.js';
import { Audit, routeOf, subjectsOf } from './audit.js';

const READS = new Set(['GET', 'HEAD', 'OPTIONS']);
/** No id: what stood in the path may be anything that was taken for one, such as an email. */
const NOT_FOUND = 404;
const AUDITED_READ = Symbol('notebridge:audited-read');

/** Records reads of this route too: who saw what they show is worth knowing. */
export const AuditedRead = (): MethodDecorator => SetMetadata(AUDITED_READ, true);

/** Records every request of a known caller that may change something, whatever its outcome, before it is answered. */
@Injectable()
export class AuditInterceptor implements NestInterceptor {
  constructor(
    private readonly reflector: Reflector,
    private readonly audit: Audit,
  ) {}

  intercept(context: ExecutionContext, next: CallHandler): Observable<unknown> {
    const http = context.switchToHttp();
    const request = http.getRequest<FastifyRequest>();
    const by = request.principal;
    const isRead = READS.has(request.method) && !this.reflector.get<boolean>(AUDITED_READ, context.getHandler());
    if (!by || isRead) return next.handle();

    const reply = http.getResponse<FastifyReply>();
    return next.handle().pipe(
      mergeMap(async (result: unknown) => {
        await this.record(by, request, reply.statusCode, result);
        return result;
      }),
      catchError(async (error: unknown) => {
        await this.record(by, request, problemOf(error)?.status ?? 500, undefined);
        throw error;
      }),
    );
  }

  private record(by: Principal, request: FastifyRequest, status: number, result: unknown): Promise<void> {
    const subjects = status === NOT_FOUND ? {} : subjectsOf(request.params, result);
    return this.audit.tryRecord({ by, action: routeOf(request), subjects, outcome: String(status) });
  }
}
