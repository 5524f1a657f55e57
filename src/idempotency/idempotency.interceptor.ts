import { randomUUID } from 'node:crypto';
import type { IncomingHttpHeaders } from 'node:http';
import { finished } from 'node:stream/promises';
import {
  applyDecorators,
  type CallHandler,
  createParamDecorator,
  type ExecutionContext,
  Injectable,
  type NestInterceptor,
  UseInterceptors,
} from '@nestjs/common';
import { ApiHeader } from '@nestjs/swagger';
import type { FastifyReply, FastifyRequest } from 'fastify';
import { from, lastValueFrom, type Observable } from 'rxjs';
import { callerOf, routeOf } from '../audit/audit-record.js';
import { Problem } from '../http/problem/problem.js';
import { Idempotency, type KeyedRequest } from './idempotency.js';

declare module 'fastify' {
  interface FastifyRequest {
    /** Set while a request runs under an Idempotency-Key. */
    creationId?: string;
  }
}

/** Lets a route that creates something honour the header Idempotency-Key. */
@Injectable()
class IdempotencyInterceptor implements NestInterceptor {
  constructor(private readonly idempotency: Idempotency) {}

  intercept(context: ExecutionContext, next: CallHandler): Observable<unknown> {
    const http = context.switchToHttp();
    const request = http.getRequest<FastifyRequest>();
    const key = idempotencyKeyOf(request.headers['idempotency-key']);
    if (key === undefined) return next.handle();
    return from(this.answer(keyedRequest(request, key), request, http.getResponse<FastifyReply>(), next));
  }

  private async answer(keyed: KeyedRequest, request: FastifyRequest, reply: FastifyReply, next: CallHandler) {
    const { answer, replayed } = await this.idempotency.once(keyed, async (creationId) => {
      request.creationId = creationId;
      const value: unknown = await lastValueFrom(next.handle(), { defaultValue: undefined });
      const location = reply.getHeader('location');
      const headers: Record<string, string> = location === undefined ? {} : { location: String(location) };
      return { status: reply.statusCode, headers, value };
    });
    if (!replayed) return answer.value;
    // Many clients read an answer only after they have sent the whole body.
    if (!request.raw.readableEnded) await finished(request.raw.resume());
    reply.code(answer.status).headers(answer.headers).header('idempotent-replayed', 'true');
    return answer.value;
  }
}

/** The route replays its first answer to a request with the same Idempotency-Key within 24 hours. */
export function Idempotent(): MethodDecorator {
  return applyDecorators(
    UseInterceptors(IdempotencyInterceptor),
    ApiHeader({
      name: 'Idempotency-Key',
      required: false,
      description:
        'A repetition within 24 hours gets the first answer. It has the same URL and JSON body; of other bodies, only Content-Type (without a multipart boundary) and Content-Length are compared',
      schema: { type: 'string', minLength: 1, maxLength: 255 },
    }),
  );
}

/**
 * Injects the UUID of the row to create. It is the same for every run of a request with an Idempotency-Key, also after a
 * crash. Insert with ON CONFLICT and continue with the existing row.
 */
export const CreationId = createParamDecorator(
  (_: unknown, context: ExecutionContext): string =>
    context.switchToHttp().getRequest<FastifyRequest>().creationId ?? randomUUID(),
);

/** The key, if any. @throws {Problem} 400 `bad-idempotency-key` unless it is 1..255 printable ASCII characters */
export function idempotencyKeyOf(header: string | string[] | undefined): string | undefined {
  if (header === undefined) return undefined;
  const key = Array.isArray(header) ? header.join(', ') : header;
  if (/^[\x20-\x7e]{1,255}$/.test(key)) return key;
  const detail = 'The header Idempotency-Key must be 1 to 255 printable ASCII characters. Use a UUID.';
  throw new Problem('bad-idempotency-key', detail);
}

function keyedRequest(request: FastifyRequest, key: string): KeyedRequest {
  const { raw, body, principal } = request;
  const isStreamed = body === raw || (body === undefined && request.isMultipart());
  return {
    scope: `${principal ? callerOf(principal) : 'public'}\n${routeOf(request)}\n${key}`,
    compared: `${request.originalUrl}\n${isStreamed ? describedBody(raw.headers) : canonicalJson(body)}`,
  };
}

/** Describes a streamed body by its headers, without the multipart boundary: clients make a new one for each attempt. */
export function describedBody(headers: Pick<IncomingHttpHeaders, 'content-type' | 'content-length'>): string {
  const type = (headers['content-type'] ?? '').split(';').filter((part) => !/^\s*boundary=/i.test(part));
  return `${type.join(';')}\n${headers['content-length'] ?? ''}`;
}

/** JSON with the members of every object in one order, so that a body written in another order is the same body. */
export function canonicalJson(value: unknown): string {
  return (
    JSON.stringify(value, (_name, member: unknown) =>
      typeof member === 'object' && member !== null && !Array.isArray(member)
        ? Object.fromEntries(Object.entries(member).sort(([a], [b]) => (a < b ? -1 : 1)))
        : member,
    ) ?? ''
  );
}
