import { createParamDecorator, type ExecutionContext } from '@nestjs/common';
import type { FastifyReply } from 'fastify';

/**
 * A signal that is aborted when the connection closes before the answer was sent, or the service begins to stop. It
 * leaves nothing behind on the server's signal, as `AbortSignal.any` does, which keeps a reference for each request.
 */
export function disconnectSignal({ raw, server }: Pick<FastifyReply, 'raw' | 'server'>): AbortSignal {
  const { closing } = server;
  const gone = new AbortController();
  const abort = () => gone.abort();
  if (closing.aborted || raw.closed) {
    abort();
    return gone.signal;
  }
  closing.addEventListener('abort', abort);
  raw.once('close', () => {
    closing.removeEventListener('abort', abort);
    if (!raw.writableFinished) abort();
  });
  return gone.signal;
}

/** Injects a signal that is aborted when there is nobody left to wait for: the caller hung up, or the service stops. */
export const ClientDisconnect = createParamDecorator(
  (_: unknown, context: ExecutionContext): AbortSignal =>
    disconnectSignal(context.switchToHttp().getResponse<FastifyReply>()),
);
