import { createParamDecorator, type ExecutionContext } from '@nestjs/common';
import type { FastifyReply, FastifyRequest } from 'fastify';

/** Seconds; longer wishes are shortened to this. */
export const LONGEST_WAIT_SECONDS = 60;

/**
 * Reads the `wait` preference of RFC 7240 §4.3. The header is only a wish, so whatever can't be read is no wish.
 *
 * @param header one or several Prefer headers
 * @returns whole seconds, 0..60, or undefined when none was asked for
 */
export function preferredWait(header: string | string[] | undefined): number | undefined {
  if (header === undefined) return undefined;
  const joined = Array.isArray(header) ? header.join(',') : header;
  for (const preference of joined.split(',')) {
    const [said = ''] = preference.split(';', 1);
    const [name = '', value = ''] = said.split('=', 2);
    const seconds = value.trim().replace(/^"|"$/g, '').trim();
    if (name.trim().toLowerCase() === 'wait' && /^\d{1,9}$/.test(seconds)) {
      return Math.min(Number(seconds), LONGEST_WAIT_SECONDS);
    }
  }
  return undefined;
}

/**
 * Injects the seconds that the caller is willing to wait and answers Preference-Applied. Its argument are the seconds of
 * a caller that did not say; 0 without one.
 */
export const PreferWait = createParamDecorator((unsaid: number | undefined, context: ExecutionContext): number => {
  const http = context.switchToHttp();
  const wait = preferredWait(http.getRequest<FastifyRequest>().headers.prefer);
  if (wait === undefined) return unsaid ?? 0;
  http.getResponse<FastifyReply>().header('preference-applied', `wait=${wait}`);
  return wait;
});
