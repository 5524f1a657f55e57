import type { Readable } from 'node:stream';
import { createParamDecorator, type ExecutionContext } from '@nestjs/common';
import type { FastifyRequest } from 'fastify';

/** Injects the body as it came: a `Buffer` with `@TakesBytes()`, the unread stream with `@TakesStream()`. */
export const RawContent = createParamDecorator((_: unknown, context: ExecutionContext): Buffer | Readable => {
  const request = context.switchToHttp().getRequest<FastifyRequest>();
  return (request.body as Buffer | Readable | undefined) ?? request.raw;
});
