import { createParamDecorator, type ExecutionContext } from '@nestjs/common';
import type { FastifyReply } from 'fastify';

/** A signal that is aborted when the connection closes before the answer was sent, or the service begins to stop. */
export function hangUpSignal(reply: FastifyReply): AbortSignal {
  const gone = new AbortController();
  reply.raw.once('close', () => {
    if (!reply.raw.writableFinished) gone.abort();
  });
  return AbortSignal.any([gone.signal, reply.server.closing]);
}

/** Injects a signal that is aborted when there is nobody left to wait for: the caller hung up, or the service stops. */
export const HangUp = createParamDecorator(
  (_: unknown, context: ExecutionContext): AbortSignal =>
    hangUpSignal(context.switchToHttp().getResponse<FastifyReply>()),
);
