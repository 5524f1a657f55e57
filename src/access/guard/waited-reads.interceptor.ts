import { type CallHandler, type ExecutionContext, Injectable, type NestInterceptor } from '@nestjs/common';
import type { FastifyReply, FastifyRequest } from 'fastify';
import { mergeMap, type Observable } from 'rxjs';
import { Callers } from './callers.js';

/** A read that waited (`Prefer: wait`) is answered only to a caller that is still allowed. */
@Injectable()
export class WaitedReadsInterceptor implements NestInterceptor {
  constructor(private readonly callers: Callers) {}

  intercept(context: ExecutionContext, next: CallHandler): Observable<unknown> {
    const http = context.switchToHttp();
    const { principal, method, headers } = http.getRequest<FastifyRequest>();
    if (!principal || method !== 'GET' || headers.prefer === undefined) return next.handle();
    const reply = http.getResponse<FastifyReply>();
    return next.handle().pipe(
      mergeMap(async (answer: unknown) => {
        if (!reply.sent) await this.callers.requireAllowed(principal);
        return answer;
      }),
    );
  }
}
