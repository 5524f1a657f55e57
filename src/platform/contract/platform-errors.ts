import { Problem } from '../../http/problem/problem.js';
import type { ProblemType } from '../../words/problem-types.js';
import type { OperationName } from './operations.js';

/** `Retry-After` if the platform sent none. */
const RETRY_SECONDS = 5;
/** `Retry-After` until an operator fixes the API key, or releases sending. */
const OPERATOR_RETRY_SECONDS = 60;

/** The texts of a failure: the sentence for the log, with a status or a reason in brackets, and the problem for the caller. */
interface Failure {
  sentence(call: string, why: string, missing: string): string;
  problem(what: string, error: PlatformError): Problem;
}

const later = (type: ProblemType, detail: string, retryAfterSeconds: number) => () =>
  new Problem(type, detail, { retryAfterSeconds });

const FAILURES = {
  /** 429; nothing was done. */
  'rate-limited': {
    sentence: (call, why) => `The platform's rate limit rejected ${call}${why}. Wait before the next call.`,
    problem: (_what, { retryAfterMs = RETRY_SECONDS * 1000 }) => {
      const detail = 'The platform limits the rate of requests. Send the request again later.';
      return new Problem('platform-rate-limited', detail, { retryAfterSeconds: retryAfterMs / 1000 });
    },
  },
  /** 401 or 403. */
  unauthorized: {
    sentence: (call, why) =>
      `The platform rejected the API key for ${call}${why}. Check PLATFORM_API_KEY, and apiKey in PLATFORM_CONTRACT.`,
    problem: later(
      'platform-unauthorized',
      'The platform rejects the API key. Ask an operator to fix it.',
      OPERATOR_RETRY_SECONDS,
    ),
  },
  /** 404. */
  'not-found': {
    sentence: (call, why) => `The platform does not know the subject of ${call}${why}.`,
    problem: (what) =>
      new Problem('not-on-platform', `The platform does not know ${what}. Check the ids in the request.`),
  },
  /** Another 4xx, a redirect, which is never followed, or a 2xx that reports no effect. */
  rejected: {
    sentence: (call, why) => `The platform rejected ${call}${why}. See platformMessage for its reason.`,
    problem: (what, { platformMessage = null }) =>
      new Problem(
        'platform-rejected',
        `The platform rejected ${what}. See platformMessage, if the platform sent one and this key may read it.`,
        { extensions: { platformMessage } },
      ),
  },
  /** The request was not sent. */
  unreachable: {
    sentence: (call, why) => `The platform could not be reached for ${call}${why}. Nothing was sent.`,
    problem: later(
      'platform-unreachable',
      'The platform cannot be reached. Send the request again later.',
      RETRY_SECONDS,
    ),
  },
  /** The request was sent, without a readable answer (timeout, reset, 408, 425, 5xx, an unreadable 2xx). */
  'unknown-outcome': {
    sentence: (call, why) => `The platform gave no readable answer to ${call}${why}. The call may have taken effect.`,
    problem: platformUnclear,
  },
  /** Sending is held. The request was not sent. */
  held: {
    sentence: (call) => `Sending is held, so ${call} was not sent. An operator releases it (npx notebridge release).`,
    problem: later(
      'sending-held',
      'An operator holds all changes to the platform. Send the request again after the release.',
      OPERATOR_RETRY_SECONDS,
    ),
  },
  /** The contract file lacks a setting. The request was not sent. */
  'not-configured': {
    sentence: (call, _why, missing) => `${call} needs ${missing} in PLATFORM_CONTRACT.`,
    problem: (_what, { missing }) => notConfigured(missing.map((setting) => `PLATFORM_CONTRACT: ${setting}`)),
  },
} satisfies Record<string, Failure>;

/** The outcome of a failed call. */
export type PlatformErrorKind = keyof typeof FAILURES;
export const PLATFORM_ERROR_KINDS = Object.keys(FAILURES) as PlatformErrorKind[];

interface PlatformErrorFacts {
  status?: number;
  /** The wait that the platform asked for. */
  retryAfterMs?: number | undefined;
  /** The platform's message, which may contain personal data. */
  platformMessage?: string | undefined;
  /** Missing settings of the contract file. */
  missing?: string[];
  isWrongAddress?: boolean;
  /** A short cause: an error code, or the unreadable part of the answer. Never a value that was sent or received. */
  reason?: string;
}

/** Thrown when a call to the platform fails. Contains no key, token, URL, header or body. */
export class PlatformError extends Error {
  override readonly name = 'PlatformError';
  readonly status: number | undefined;
  readonly retryAfterMs: number | undefined;
  readonly missing: string[];
  readonly reason: string | undefined;
  /** True if this URL is not that of the operation (a redirect, a 405, an HTML page), so the call had no effect. */
  readonly isWrongAddress: boolean;
  /** Private, so that no log or serialisation shows it. */
  readonly #platformMessage: string | undefined;

  /** @param operation `upload` if a file was sent to an upload URL, `push` if an event was sent to the EHR */
  constructor(
    readonly kind: PlatformErrorKind,
    readonly operation: OperationName | 'upload' | 'push',
    facts: PlatformErrorFacts = {},
  ) {
    const { status, reason = status, missing = [] } = facts;
    super(FAILURES[kind].sentence(operation, reason === undefined ? '' : ` (${reason})`, missing.join(', ')));
    this.status = status;
    this.retryAfterMs = facts.retryAfterMs;
    this.missing = missing;
    this.reason = facts.reason;
    this.isWrongAddress = facts.isWrongAddress ?? false;
    this.#platformMessage = facts.platformMessage;
  }

  /** True if the platform reported success with unreadable content. */
  get isUnreadable(): boolean {
    return this.kind === 'unknown-outcome' && this.status !== undefined && this.status < 300;
  }

  /** The platform's message, at most 500 characters. It may contain personal data: never log it. */
  get platformMessage(): string | undefined {
    return this.#platformMessage;
  }
}

/**
 * Converts a {@link PlatformError} to a problem; returns other errors unchanged. The platform's message may contain
 * personal data, so it is only in `platformMessage`.
 *
 * @param what the subject of the call, such as "this session"
 */
export function platformProblem(error: unknown, what: string): unknown {
  return error instanceof PlatformError ? FAILURES[error.kind].problem(what, error) : error;
}

/** The problem of a call with an unknown outcome. @param what its subject, such as "this session" */
export function platformUnclear(what: string): Problem {
  return new Problem('platform-unclear', `The platform gave no readable answer about ${what}. Check it again later.`);
}

/** The problem of a capability that lacks settings, with their names in `GET /v1/capabilities`. */
export function notConfigured(missing: readonly string[]): Problem {
  return new Problem('not-configured', `This capability is off. Set ${missing.join(', ')}, then restart.`, {
    extensions: { missing },
  });
}
