import type { OperationName } from './operations.js';

/**
 * What a failed call came to.
 *
 * - `rate-limited`: 429; nothing was done.
 * - `unauthorized`: 401 or 403.
 * - `not-found`: 404.
 * - `rejected`: another 4xx, or a redirect, which is never followed.
 * - `unreachable`: nothing was sent.
 * - `unknown-outcome`: sent, and no readable answer came (timeout, reset, 408, 425, 5xx, an unreadable 2xx).
 * - `not-configured`: the contract file lacks a setting; nothing was sent.
 */
export type PlatformErrorKind =
  | 'rate-limited'
  | 'unauthorized'
  | 'not-found'
  | 'rejected'
  | 'unreachable'
  | 'unknown-outcome'
  | 'not-configured';

/** `upload` is the sending of a file to an upload URL. */
export type PlatformErrorSubject = OperationName | 'upload';

interface PlatformErrorFacts {
  status?: number;
  /** How long the platform asks to wait, in milliseconds. */
  retryAfterMs?: number | undefined;
  /** What the platform said; may hold personal data. */
  platformMessage?: string | undefined;
  /** Contract settings that are missing. */
  missing?: string[];
  /** The answer is none of the platform's API: see {@link PlatformError.isWrongAddress}. */
  isWrongAddress?: boolean;
  /** A word or two on the cause: an error code, or where an answer is unreadable. Never a value from either side. */
  reason?: string;
}

/** A call to the platform that did not succeed. It holds no key, token, address, header or body. */
export class PlatformError extends Error {
  override readonly name = 'PlatformError';
  readonly status: number | undefined;
  readonly retryAfterMs: number | undefined;
  readonly missing: string[];
  /**
   * The answer tells that something else than the operation lives at this address (a redirect, a 405, an HTML page), so
   * that nothing was done. A 404 may tell so, too; only the caller can know.
   */
  readonly isWrongAddress: boolean;
  /** Private to the object, so that no log and no serialisation shows it. */
  readonly #platformMessage: string | undefined;

  constructor(
    readonly kind: PlatformErrorKind,
    readonly operation: PlatformErrorSubject,
    facts: PlatformErrorFacts = {},
  ) {
    super(sentence(kind, operation, facts));
    this.status = facts.status;
    this.retryAfterMs = facts.retryAfterMs;
    this.missing = facts.missing ?? [];
    this.isWrongAddress = facts.isWrongAddress ?? false;
    this.#platformMessage = facts.platformMessage;
  }

  /** What the platform said, at most 500 characters. It may hold personal data: show it to the caller, log it never. */
  get platformMessage(): string | undefined {
    return this.#platformMessage;
  }
}

function sentence(kind: PlatformErrorKind, operation: PlatformErrorSubject, facts: PlatformErrorFacts): string {
  const status = facts.status === undefined ? '' : ` (${facts.status})`;
  const reason = facts.reason === undefined ? status : ` (${facts.reason})`;
  switch (kind) {
    case 'rate-limited':
      return `The platform's rate limit stopped ${operation}${status}; wait before the next call.`;
    case 'unauthorized':
      return `The platform refused the API key for ${operation}${status}; check PLATFORM_API_KEY and apiKey in PLATFORM_CONTRACT.`;
    case 'not-found':
      return `The platform does not know what ${operation} was about${status}.`;
    case 'rejected':
      return `The platform rejected ${operation}${reason}; what it said is in platformMessage.`;
    case 'unreachable':
      return `The platform could not be reached for ${operation}${reason}; nothing was sent.`;
    case 'unknown-outcome':
      return `No readable answer came to ${operation}${reason}; the platform may have done it.`;
    case 'not-configured':
      return `${operation} needs ${(facts.missing ?? []).join(', ')} in PLATFORM_CONTRACT.`;
  }
}

/** An error's code alone: its message may hold addresses, and an HTTP client's error holds the whole request. */
export function codeOf(error: unknown): string | undefined {
  const code: unknown = typeof error === 'object' && error !== null ? Reflect.get(error, 'code') : undefined;
  return typeof code === 'string' && /^[A-Z0-9_]+$/.test(code) ? code : undefined;
}
