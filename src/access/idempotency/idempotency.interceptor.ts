import { createHash, randomUUID } from 'node:crypto';
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
import { Problem } from '../../http/problem/problem.js';
import { routeOf } from '../audit/audit.js';
import { digestAlongside, digestOf } from './body-digest.js';
import { Idempotency, type KeyedRequest } from './idempotency.js';

/** Headers of an answer that are replayed with it. */
const KEPT_HEADERS = ['location'];

declare module 'fastify' {
  interface FastifyRequest {
    /** Set while a request runs under an Idempotency-Key. */
    creationId?: string;
  }
}

/** Lets a route that creates something honour the header Idempotency-Key. */
@Injectable()
export class IdempotencyInterceptor implements NestInterceptor {
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
      const headers = KEPT_HEADERS.flatMap((name) => {
        const content = reply.getHeader(name);
        return content === undefined ? [] : [[name, String(content)]];
      });
      return { status: reply.statusCode, headers: Object.fromEntries(headers), value };
    });
    if (replayed) reply.code(answer.status).headers(answer.headers).header('idempotent-replayed', 'true');
    return answer.value;
  }
}

function keyedRequest(request: FastifyRequest, key: string): KeyedRequest {
  const scope = `${request.principal?.id ?? 'public'}\n${routeOf(request)}\n${key}`;
  const target = request.originalUrl;
  const stays = (digest: string) => ({ scope, target, digest: () => digest, drain: async () => digest });
  if (!isUnread(request)) return stays(digestOfParsed(request.body));
  let alongside: (() => string | undefined) | undefined = digestAlongside(request.raw);
  return {
    scope,
    target,
    digest: () => alongside?.(),
    drain: () => {
      alongside = undefined;
      return digestOf(request.raw);
    },
  };
}

/** A stream that the handler will read: raw, or multipart. */
function isUnread(request: FastifyRequest): boolean {
  return request.body === request.raw || (request.body === undefined && request.isMultipart());
}

function digestOfParsed(body: unknown): string {
  const bytes = Buffer.isBuffer(body) ? body : canonicalJson(body);
  return createHash('sha256').update(bytes).digest('hex');
}

/** The route replays its first answer to whoever sends the same Idempotency-Key again within 24 hours. */
export function Idempotent(): MethodDecorator {
  return applyDecorators(
    UseInterceptors(IdempotencyInterceptor),
    ApiHeader({
      name: 'Idempotency-Key',
      required: false,
      description: 'Sent again with the same body within 24 hours, the first answer comes back',
      schema: { type: 'string', minLength: 1, maxLength: 255 },
    }),
  );
}

/**
 * Injects the UUID under which the route should create its row: the same for every run of one request with an
 * Idempotency-Key (also after a crash in the middle), a new one otherwise. Insert with ON CONFLICT and go on with
 * what is there.
 */
export const CreationId = createParamDecorator(
  (_: unknown, context: ExecutionContext): string =>
    context.switchToHttp().getRequest<FastifyRequest>().creationId ?? randomUUID(),
);

/**
 * Reads the Idempotency-Key header.
 *
 * @returns undefined when there is none
 * @throws {Problem} 400 `bad-idempotency-key` unless it is 1..255 printable ASCII characters
 */
export function idempotencyKeyOf(header: string | string[] | undefined): string | undefined {
  if (header === undefined) return undefined;
  const key = Array.isArray(header) ? header.join(', ') : header;
  if (/^[\x20-\x7e]{1,255}$/.test(key)) return key;
  throw new Problem(
    400,
    'bad-idempotency-key',
    'The header Idempotency-Key must be 1 to 255 printable ASCII characters; a UUID is a good one.',
  );
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
