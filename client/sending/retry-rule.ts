import type { NotebridgeError } from '../notebridge-error.js';

/** How often a request is sent by default: with the pauses between, about 15 seconds. */
export const DEFAULT_ATTEMPTS = 6;

const INITIAL_BACKOFF_MS = 500;
export const MAX_BACKOFF_MS = 30_000;

/** The longest pause that `Retry-After` can ask of a reader without an end. Timers cannot wait for longer than 24 days. */
export const MAX_NAMED_PAUSE_MS = 3_600_000;

/** Statuses after which a repetition may succeed. 501 is not one: the service lacks a setting. */
const PASSING: ReadonlySet<number> = new Set([0, 408, 429, 500, 502, 503, 504]);

/** Methods that may always be repeated (RFC 9110 §9.2.2). A PATCH of this API may not. */
const REPEATABLE: ReadonlySet<string> = new Set(['GET', 'HEAD', 'PUT', 'DELETE']);

/**
 * Decides whether a request may be sent more than once.
 *
 * @param idempotentPosts paths of the POSTs that take an `Idempotency-Key`
 */
export function isRepeatable(method: string, path: string, idempotentPosts: readonly string[]): boolean {
  return REPEATABLE.has(method) || (method === 'POST' && idempotentPosts.includes(path));
}

/** True if a failure does not show whether the service has done the request. */
export function isLost({ type }: Pick<NotebridgeError, 'type'>): boolean {
  return type === 'no-answer' || type === 'unreadable-answer';
}

/**
 * True if a repeated DELETE has found that an earlier attempt was done: now the service does not know the resource.
 *
 * @param isAnswerLost true if an earlier attempt got no answer, or a proxy's
 */
export function isDeleted(
  method: string,
  error: Pick<NotebridgeError, 'status' | 'type'>,
  isAnswerLost: boolean,
): boolean {
  return method === 'DELETE' && error.status === 404 && error.type !== 'unreadable-answer' && isAnswerLost;
}

/** True if the same request may succeed later. */
export function isPassing({ status, type }: Pick<NotebridgeError, 'status' | 'type'>): boolean {
  // The first attempt got no answer and still runs.
  if (type === 'idempotency-in-progress') return true;
  return status === 0 ? type === 'no-answer' : PASSING.has(status);
}

/**
 * The pause before a request is sent again, with increasing backoff and never shorter than `Retry-After`, which counts
 * for at most an hour.
 *
 * @param sent how often it was sent
 * @param attempts how often it may be sent; infinite for a reader of the feed
 * @param random between 0 and 1: shortens the backoff by up to a half, so that callers do not return together
 * @returns milliseconds; undefined if it is not sent again, which includes a `Retry-After` above 30 seconds unless
 *   `attempts` is infinite
 */
export function pauseBefore(
  sent: number,
  attempts: number,
  error: Pick<NotebridgeError, 'status' | 'type' | 'retryAfter'>,
  random: number,
): number | undefined {
  if (sent >= attempts || !isPassing(error)) return undefined;
  const namedMs = Math.min((error.retryAfter ?? 0) * 1_000, MAX_NAMED_PAUSE_MS);
  if (namedMs > MAX_BACKOFF_MS && Number.isFinite(attempts)) return undefined;
  const backoffMs = Math.min(INITIAL_BACKOFF_MS * 2 ** (sent - 1), MAX_BACKOFF_MS) * (1 - random / 2);
  return Math.max(namedMs, backoffMs);
}
