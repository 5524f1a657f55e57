import { type ProblemTypes, typesOf } from '../../http/problem/described-problems.js';
import { Problem } from '../../http/problem/problem.js';
import type { OperationName } from './operations.js';

/** Seconds that a caller is asked to wait: unless the platform named a wait, and until an operator may have mended the key. */
const RETRY_SECONDS = 5;
const UNAUTHORIZED_RETRY_SECONDS = 60;

/** How a failure is said: to the log (a status or a reason stands in brackets), and to a caller who waits for the call. */
interface Failure {
  sentence(call: string, why: string, missing: string): string;
  problem(what: string, error: PlatformError): Problem;
}

const FAILURES = {
  /** 429; nothing was done. */
  'rate-limited': {
    sentence: (call, why) => `The platform's rate limit stopped ${call}${why}; wait before the next call.`,
    problem: (_what, { retryAfterMs = RETRY_SECONDS * 1000 }) =>
      later(
        'platform-rate-limited',
        'The platform asks for patience; send the request again later.',
        retryAfterMs / 1000,
      ),
  },
  /** 401 or 403. */
  unauthorized: {
    sentence: (call, why) =>
      `The platform refused the API key for ${call}${why}; check PLATFORM_API_KEY and apiKey in PLATFORM_CONTRACT.`,
    problem: () =>
      later(
        'platform-unauthorized',
        'The platform refuses our key; an operator must look at it.',
        UNAUTHORIZED_RETRY_SECONDS,
      ),
  },
  /** 404. */
  'not-found': {
    sentence: (call, why) => `The platform does not know what ${call} was about${why}.`,
    problem: (what) =>
      new Problem(404, 'not-on-platform', `The platform does not know ${what}; check the ids it was given.`),
  },
  /** Another 4xx, a redirect, which is never followed, or a 2xx that says that nothing was done. */
  rejected: {
    sentence: (call, why) => `The platform rejected ${call}${why}; what it said is in platformMessage.`,
    problem: (what, { platformMessage = null }) =>
      new Problem(
        400,
        'platform-rejected',
        `The platform rejected ${what}; platformMessage has its words, if it gave any and this key may read them.`,
        { extensions: { platformMessage } },
      ),
  },
  /** Nothing was sent. */
  unreachable: {
    sentence: (call, why) => `The platform could not be reached for ${call}${why}; nothing was sent.`,
    problem: () =>
      later('platform-unreachable', 'The platform can not be reached; send the request again later.', RETRY_SECONDS),
  },
  /** Sent, and no readable answer came (timeout, reset, 408, 425, 5xx, an unreadable 2xx). */
  'unknown-outcome': {
    sentence: (call, why) => `No readable answer came to ${call}${why}; the platform may have done it.`,
    problem: platformUnclear,
  },
  /** The contract file lacks a setting; nothing was sent. */
  'not-configured': {
    sentence: (call, _why, missing) => `${call} needs ${missing} in PLATFORM_CONTRACT.`,
    problem: (_what, { missing }) => notConfigured(missing.map((setting) => `PLATFORM_CONTRACT: ${setting}`)),
  },
} satisfies Record<string, Failure>;

/** What a failed call came to. */
export type PlatformErrorKind = keyof typeof FAILURES;
export const PLATFORM_ERROR_KINDS = Object.keys(FAILURES) as PlatformErrorKind[];

interface PlatformErrorFacts {
  status?: number;
  /** How long the platform asks to wait, in milliseconds. */
  retryAfterMs?: number | undefined;
  /** What the platform said; may hold personal data. */
  platformMessage?: string | undefined;
  /** Contract settings that are missing. */
  missing?: string[];
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
  /** Something else than the operation is at this address (a redirect, a 405, an HTML page): nothing was done. */
  readonly isWrongAddress: boolean;
  /** Private to the object, so that no log and no serialisation shows it. */
  readonly #platformMessage: string | undefined;

  /** @param operation `upload` is the sending of a file to an upload URL */
  constructor(
    readonly kind: PlatformErrorKind,
    readonly operation: OperationName | 'upload',
    facts: PlatformErrorFacts = {},
  ) {
    const { status, reason = status, missing = [] } = facts;
    super(FAILURES[kind].sentence(operation, reason === undefined ? '' : ` (${reason})`, missing.join(', ')));
    this.status = status;
    this.retryAfterMs = facts.retryAfterMs;
    this.missing = missing;
    this.isWrongAddress = facts.isWrongAddress ?? false;
    this.#platformMessage = facts.platformMessage;
  }

  /** A success came whose content is not what it should be. */
  get isUnreadable(): boolean {
    return this.kind === 'unknown-outcome' && this.status !== undefined && this.status < 300;
  }

  /** What the platform said, at most 500 characters. It may hold personal data: show it to the caller, log it never. */
  get platformMessage(): string | undefined {
    return this.#platformMessage;
  }
}

/**
 * The problem with which a failed call is answered; what is no {@link PlatformError} comes back as it is. What the
 * platform said may hold personal data: it stands in `platformMessage`, never in `detail`.
 *
 * @param what names the thing in a sentence, such as "this session"
 */
export function platformProblem(error: unknown, what: string): unknown {
  return error instanceof PlatformError ? FAILURES[error.kind].problem(what, error) : error;
}

/** The problems with which failed calls are answered. */
export const PLATFORM_PROBLEMS: ProblemTypes = typesOf(
  'platform',
  PLATFORM_ERROR_KINDS.map((kind) => FAILURES[kind].problem('', new PlatformError(kind, 'upload'))),
);

/** The problem of a capability that is switched off. */
export const NOT_CONFIGURED: ProblemTypes = { 501: ['not-configured'] };

/** The answer to a call of unknown outcome. @param what names the thing in a sentence */
export function platformUnclear(what: string): Problem {
  return new Problem(504, 'platform-unclear', `The platform gave no readable answer about ${what}; look again later.`);
}

/** The answer of a capability that lacks settings, named as `GET /v1/capabilities` names them. */
export function notConfigured(missing: readonly string[]): Problem {
  return new Problem(501, 'not-configured', `This is switched off; set ${missing.join(', ')} and restart.`, {
    extensions: { missing },
  });
}

function later(type: string, detail: string, retryAfterSeconds: number): Problem {
  return new Problem(503, type, detail, { retryAfterSeconds });
}
