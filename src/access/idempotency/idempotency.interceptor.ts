import { createHash, randomUUID } from 'node:crypto';
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
import { Problems, type ProblemTypes } from '../../http/problem/described-problems.js';
import { Problem } from '../../http/problem/problem.js';
import { routeOf } from '../audit/audit-record.js';
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
    if (replayed) reply.code(answer.status).headers(answer.headers).header('idempotent-replayed', 'true');
    return answer.value;
  }
}

const PROBLEMS: ProblemTypes = {
  name: 'idempotent',
  400: ['bad-idempotency-key'],
  409: ['idempotency-in-progress'],
  422: ['idempotency-key-reused'],
};

/** The route replays its first answer to a request with the same Idempotency-Key within 24 hours. */
export function Idempotent(): MethodDecorator {
  return applyDecorators(
    UseInterceptors(IdempotencyInterceptor),
    Problems(PROBLEMS),
    ApiHeader({
      name: 'Idempotency-Key',
      required: false,
      description: 'Sent again with the same body within 24 hours, the first answer comes back',
      schema: { type: 'string', minLength: 1, maxLength: 255 },
    }),
  );
}

/**
 * Injects the UUID to create a row under: the same for every run of one request with an Idempotency-Key, also after a
 * crash in the middle. Insert with ON CONFLICT and go on with what is there.
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
  const detail = 'The header Idempotency-Key must be 1 to 255 printable ASCII characters; a UUID is a good one.';
  throw new Problem(400, 'bad-idempotency-key', detail);
}

function keyedRequest(request: FastifyRequest, key: string): KeyedRequest {
  const { raw, body } = request;
  const scope = `${request.principal?.id ?? 'public'}\n${routeOf(request)}\n${key}`;
  const target = request.originalUrl;
  const isUnread = body === raw || (body === undefined && request.isMultipart());
  if (!isUnread) {
    const bytes = Buffer.isBuffer(body) ? body : canonicalJson(body);
    const digest = createHash('sha256').update(bytes).digest('hex');
    return { scope, target, digest: () => digest, drain: async () => digest };
  }
  const digest = new BodyDigest(raw.headers['content-type']);
  let result: string | undefined;
  raw.pause(); // The body goes at its reader's pace: the listener would start the flow before one is there.
  raw.on('data', (chunk: Buffer) => digest.update(chunk));
  raw.once('end', () => {
    result = digest.end();
  });
  const drain = async () => {
    await finished(raw.resume());
    return String(result);
  };
  return { scope, target, digest: () => result, drain };
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

/**
 * SHA-256 of a body that passes by in chunks. A multipart boundary is left out of it: clients draw a new one for every
 * attempt, and the form is the same.
 */
export class BodyDigest {
  private readonly hash = createHash('sha256');
  private readonly boundary: Buffer;
  private tail: Buffer = Buffer.alloc(0);

  /** @param contentType of the body */
  constructor(contentType: string | undefined) {
    const match = /^multipart\/.*;\s*boundary=(?:"([^"]+)"|([^\s;]+))/i.exec(contentType ?? '');
    this.boundary = Buffer.from(match?.[1] ?? match?.[2] ?? '', 'latin1');
  }

  update(chunk: Buffer): void {
    if (this.boundary.length === 0) {
      this.hash.update(chunk);
      return;
    }
    let rest = this.tail.length > 0 ? Buffer.concat([this.tail, chunk]) : chunk;
    for (let at = rest.indexOf(this.boundary); at >= 0; at = rest.indexOf(this.boundary)) {
      this.hash.update(rest.subarray(0, at));
      rest = rest.subarray(at + this.boundary.length);
    }
    // A boundary may go on in the next chunk.
    const kept = Math.min(rest.length, this.boundary.length - 1);
    this.hash.update(rest.subarray(0, rest.length - kept));
    this.tail = Buffer.from(rest.subarray(rest.length - kept));
  }

  /** The digest in hex; nothing may come after it. */
  end(): string {
    return this.hash.update(this.tail).digest('hex');
  }
}
