import { Problem } from '../../http/problem/problem.js';
import type { ProblemType } from '../../words/problem-types.js';
import type { OperationName } from './operations.js';

/** `Retry-After` if the platform sent none. */
const RETRY_SECONDS = 5;
/** `Retry-After` until an operator fixes the API key, or releases sending. */
const OPERATOR_RETRY_SECONDS = 60;

/** A failure, for the log and for the caller of this service. */
interface Failure {
  /** Says what happened and what to do. @param call the operation, with a status or a reason in brackets */
  sentence(call: string, missing: string): string;
  problem: ProblemType;
  retryAfterSeconds?: number;
}

const FAILURES = {
  /** 429; nothing was done. */
  'rate-limited': {
    sentence: (call) => `The platform's rate limit rejected ${call}. Wait before the next call.`,
    problem: 'platform-rate-limited',
    retryAfterSeconds: RETRY_SECONDS,
  },
  /** 401 or 403. */
  unauthorized: {
    sentence: (call) =>
      `The platform rejected the API key for ${call}. Check PLATFORM_API_KEY, and apiKey in PLATFORM_CONTRACT.`,
    problem: 'platform-unauthorized',
    retryAfterSeconds: OPERATOR_RETRY_SECONDS,
  },
  /** 404. */
  'not-found': {
    sentence: (call) => `The platform does not know the subject of ${call}. Check the ids in the request.`,
    problem: 'not-on-platform',
  },
  /** Another 4xx, a redirect, which is never followed, or a 2xx that reports no effect. */
  rejected: {
    sentence: (call) => `The platform rejected ${call}. See platformMessage for its reason, if it sent one.`,
    problem: 'platform-rejected',
  },
  /** The request was not sent. */
  unreachable: {
    sentence: (call) => `The platform could not be reached for ${call}. Nothing was sent. Try again later.`,
    problem: 'platform-unreachable',
    retryAfterSeconds: RETRY_SECONDS,
  },
  /** The request was sent, without a readable answer (timeout, reset, 408, 425, 5xx, an unreadable 2xx). */
  'unknown-outcome': {
    sentence: (call) => `The platform gave no readable answer to ${call}. The call may have taken effect.`,
    problem: 'platform-unclear',
  },
  /** Sending is held. The request was not sent. */
  held: {
    sentence: (call) => `Sending is held, so ${call} was not sent. An operator releases it (npx notebridge release).`,
    problem: 'sending-held',
    retryAfterSeconds: OPERATOR_RETRY_SECONDS,
  },
  /** The contract file lacks a setting. The request was not sent. */
  'not-configured': {
    sentence: (call, missing) => `${call} needs ${missing} in PLATFORM_CONTRACT.`,
    problem: 'not-configured',
  },
} satisfies Record<string, Failure>;

/** The outcome of a failed call. */
export type PlatformErrorKind = keyof typeof FAILURES;
export const PLATFORM_ERROR_KINDS = Object.keys(FAILURES) as PlatformErrorKind[];

type PlatformErrorFacts = Partial<
  Pick<PlatformError, 'status' | 'retryAfterMs' | 'platformMessage' | 'missing' | 'isWrongAddress' | 'reason'>
>;

/** Thrown when a call to the platform fails. Contains no key, token, URL, header or body. */
export class PlatformError extends Error {
  override readonly name = 'PlatformError';
  readonly status: number | undefined;
  /** The wait that the platform asked for. */
  readonly retryAfterMs: number | undefined;
  /** Missing settings of the contract file. */
  readonly missing: string[];
  /** A short cause: an error code, or the unreadable part of the answer. Never a value that was sent or received. */
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
    super(FAILURES[kind].sentence(reason === undefined ? operation : `${operation} (${reason})`, missing.join(', ')));
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

/** The codes of failed calls that differ from their kind. */
const CODES: { [Kind in PlatformErrorKind]?: string } = {
  'not-found': 'maybe-gone',
  unauthorized: 'platform-unauthorized',
  unreachable: 'platform-unreachable',
  'unknown-outcome': 'platform-fault',
};

/** The code of a failed call in rows and metrics, in addition to `gone` for a 404 that is not that of a wrong URL. */
export function faultOf(error: PlatformError): string {
  if (error.isWrongAddress) return 'platform-address';
  return error.isUnreadable ? 'unreadable-answer' : (CODES[error.kind] ?? error.kind);
}

/**
 * Converts a {@link PlatformError} to a problem; returns other errors unchanged. The platform's message may contain
 * personal data, so it is only in `platformMessage`.
 */
export function platformProblem(error: unknown): unknown {
  if (!(error instanceof PlatformError)) return error;
  const { kind, missing, retryAfterMs, platformMessage = null } = error;
  if (kind === 'not-configured') return notConfigured(missing.map((setting) => `PLATFORM_CONTRACT: ${setting}`));
  const { problem, retryAfterSeconds }: Failure = FAILURES[kind];
  return new Problem(problem, error.message, {
    ...(retryAfterSeconds && { retryAfterSeconds: retryAfterMs ? retryAfterMs / 1000 : retryAfterSeconds }),
    ...(kind === 'rejected' && { extensions: { platformMessage } }),
  });
}

/** The problem of a capability that lacks settings, with their names in `GET /v1/capabilities`. */
export function notConfigured(missing: readonly string[]): Problem {
  return new Problem('not-configured', `This capability is off. Set ${missing.join(', ')}, then restart.`, {
    extensions: { missing },
  });
}
