import type { OperationName } from './operations.js';

/** How each failure is said; a status or a reason stands in brackets. */
const SENTENCES = {
  /** 429; nothing was done. */
  'rate-limited': (call: string, why: string) =>
    `The platform's rate limit stopped ${call}${why}; wait before the next call.`,
  /** 401 or 403. */
  unauthorized: (call: string, why: string) =>
    `The platform refused the API key for ${call}${why}; check PLATFORM_API_KEY and apiKey in PLATFORM_CONTRACT.`,
  /** 404. */
  'not-found': (call: string, why: string) => `The platform does not know what ${call} was about${why}.`,
  /** Another 4xx, or a redirect, which is never followed. */
  rejected: (call: string, why: string) => `The platform rejected ${call}${why}; what it said is in platformMessage.`,
  /** Nothing was sent. */
  unreachable: (call: string, why: string) => `The platform could not be reached for ${call}${why}; nothing was sent.`,
  /** Sent, and no readable answer came (timeout, reset, 408, 425, 5xx, an unreadable 2xx). */
  'unknown-outcome': (call: string, why: string) =>
    `No readable answer came to ${call}${why}; the platform may have done it.`,
  /** The contract file lacks a setting; nothing was sent. */
  'not-configured': (call: string, _why: string, missing: string) => `${call} needs ${missing} in PLATFORM_CONTRACT.`,
};

/** What a failed call came to. */
export type PlatformErrorKind = keyof typeof SENTENCES;

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
   * The answer shows that something else than the operation is at this address (a redirect, a 405, an HTML page), so
   * that nothing was done. A 404 may mean the same; only the caller can decide.
   */
  readonly isWrongAddress: boolean;
  /** Private to the object, so that no log and no serialisation shows it. */
  readonly #platformMessage: string | undefined;

  constructor(
    readonly kind: PlatformErrorKind,
    readonly operation: PlatformErrorSubject,
    facts: PlatformErrorFacts = {},
  ) {
    const { status, reason = status, missing = [] } = facts;
    super(SENTENCES[kind](operation, reason === undefined ? '' : ` (${reason})`, missing.join(', ')));
    this.status = status;
    this.retryAfterMs = facts.retryAfterMs;
    this.missing = missing;
    this.isWrongAddress = facts.isWrongAddress ?? false;
    this.#platformMessage = facts.platformMessage;
  }

  /** What the platform said, at most 500 characters. It may hold personal data: show it to the caller, log it never. */
  get platformMessage(): string | undefined {
    return this.#platformMessage;
  }
}

/** An error's code alone: its message may hold addresses, and an HTTP client's error holds the whole request. */
export function codeOf(error: unknown): string | undefined {
  const code: unknown = typeof error === 'object' && error !== null ? Reflect.get(error, 'code') : undefined;
  return typeof code === 'string' && /^[A-Z0-9_]+$/.test(code) ? code : undefined;
}
