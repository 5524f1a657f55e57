import { createParamDecorator, type ExecutionContext } from '@nestjs/common';
import { ApiHeader } from '@nestjs/swagger';
import type { FastifyReply, FastifyRequest } from 'fastify';
import { documenting } from './route-parameter.js';

/** Maximum wait; a longer one is shortened to this. */
const MAX_WAIT_SECONDS = 60;

const WAIT = /(?:^|,)\s*wait\s*=\s*(?:"\s*)?(\d{1,9})\s*(?:"\s*)?(?:[;,]|$)/i;

/** The seconds of the `wait` preference (RFC 7240 §4.3), at most 60; one that can't be read is ignored. */
export function preferredWait(header: string | string[] | undefined): number | undefined {
  const seconds = WAIT.exec([header].flat().join(','))?.[1];
  return seconds === undefined ? undefined : Math.min(Number(seconds), MAX_WAIT_SECONDS);
}

/** The seconds that the caller is willing to wait; answers Preference-Applied. */
export function waitOf(context: ExecutionContext, byDefault = 0): number {
  const http = context.switchToHttp();
  const wait = preferredWait(http.getRequest<FastifyRequest>().headers.prefer);
  if (wait === undefined) return byDefault;
  http.getResponse<FastifyReply>().header('preference-applied', `wait=${wait}`);
  return wait;
}

/** Documents that a route waits as long as its caller prefers. */
export const ApiPrefer = (byDefault = 0): MethodDecorator =>
  ApiHeader({
    name: 'Prefer',
    required: false,
    description: `\`wait=N\`: answer when it is settled, or after N seconds (at most ${MAX_WAIT_SECONDS}; ${byDefault} if absent)`,
    schema: { type: 'string', example: 'wait=10' },
  });

/**
 * Injects a signal that is aborted when the connection closes before the answer, or the service begins to stop. Nothing
 * stays on the server's signal, on which `AbortSignal.any` keeps a reference for each request.
 */
export function disconnectOf(context: ExecutionContext): AbortSignal {
  const { raw, server } = context.switchToHttp().getResponse<FastifyReply>();
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

/** Injects `disconnectOf` the request. */
export const ClientDisconnect = createParamDecorator((_: unknown, context: ExecutionContext) => disconnectOf(context));

/** How long a caller waits. */
export interface Wait {
  seconds: number;
  /** `disconnectOf` the request. */
  signal: AbortSignal;
}

const InjectedWait = createParamDecorator(
  (byDefault: number | undefined, context: ExecutionContext): Wait => ({
    seconds: waitOf(context, byDefault),
    signal: disconnectOf(context),
  }),
);

/** Injects how long the caller waits. @param byDefault seconds without `Prefer: wait`; defaults to 0 */
export const PreferWait = (byDefault?: number): ParameterDecorator =>
  documenting(InjectedWait(byDefault), ApiPrefer(byDefault));
