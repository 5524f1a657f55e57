import createClient from 'openapi-fetch';
import type { components, paths } from './schema.js';

/** The shapes of the API, by their names in `openapi.json`. */
export type Schemas = components['schemas'];

/** What the browser session needs said with each change; empty until somebody has signed in. Each session has its own. */
let csrfToken = '';

const CSRF_HEADER = 'x-csrf-token';

/** Told when the service no longer takes the session. */
let onSignedOut: () => void = () => undefined;

/** Problems of a request that needs a recent sign-in and a reason. */
const STEP_UPS: ReadonlySet<string> = new Set(['step-up-required', 'purpose-required']);

/** Asks who is there and why. @returns the reason; undefined if the request shall not be repeated */
let onStepUp: (needsSignIn: boolean) => Promise<string | undefined> = async () => undefined;

/** Reads the token again: another tab may have signed in since. */
let onTokenStale: () => Promise<unknown> = async () => undefined;

export function whenTokenStale(reads: typeof onTokenStale): void {
  onTokenStale = reads;
}

export function whenStepUpNeeded(asks: typeof onStepUp): void {
  onStepUp = asks;
}

export function rememberCsrfToken(token: string): void {
  csrfToken = token;
}

export function whenSignedOut(told: () => void): void {
  onSignedOut = told;
}

/** For requests that do not go through {@link api}. */
export const csrf = (): string => csrfToken;

/** True if the session has ended. */
export const isSignedOut = (error: unknown): boolean => error instanceof ProblemError && error.status === 401;

/**
 * What a call failed with. That the session has ended is told whoever made the call, unless that was asked in the session
 * before: somebody may have signed in again since.
 *
 * @param askedBy the token of the session in which the call was made
 */
export async function refusalOf(response: Response, askedBy: string | null): Promise<ProblemError> {
  const problem = await problemOf(response);
  if (isSignedOut(problem) && askedBy === csrfToken) onSignedOut();
  return problem;
}

/** The console reads neither streams nor lines with this client. */
type Media = 'application/json' | 'application/problem+json';

/** Every call of the API, typed by `openapi.json`. A failure is thrown as a {@link ProblemError}. */
export const api = createClient<paths, Media>({ baseUrl: location.origin, credentials: 'same-origin' });

/** Sent requests, to be repeated once somebody has confirmed who they are. */
const sent = new WeakMap<Request, Request>();

api.use({
  onRequest({ request }) {
    request.headers.set(CSRF_HEADER, csrfToken);
    sent.set(request, request.clone());
  },
  async onResponse({ request, response }) {
    if (response.ok) return;
    const problem = await refusalOf(response, request.headers.get(CSRF_HEADER));
    const again = sent.get(request);
    if (!again) throw problem;
    if (problem.type === 'forged-request') await onTokenStale();
    else {
      const purpose = STEP_UPS.has(problem.type) && (await onStepUp(problem.type === 'step-up-required'));
      if (!purpose) throw problem;
      again.headers.set('notebridge-purpose', purpose);
    }
    again.headers.set(CSRF_HEADER, csrfToken);
    const repeated = await fetch(again);
    if (!repeated.ok) throw await refusalOf(repeated, csrfToken);
    return repeated;
  },
  onError() {
    return new ProblemError(0, 'unreachable', 'The service can not be reached; check that it runs, then try again.');
  },
});

/** What a call answered; that it has a body is known from its type. */
export async function body<T>(call: Promise<{ data?: T }>): Promise<T> {
  return (await call).data as T;
}

/** What the service answered instead of what was asked for (RFC 9457). */
export class ProblemError extends Error {
  constructor(
    readonly status: number,
    /** The stable word behind `urn:notebridge:problem:`. */
    readonly type: string,
    detail: string,
    /** Further members of the problem. */
    readonly more: Readonly<Record<string, unknown>> = {},
  ) {
    super(detail);
    this.name = 'ProblemError';
  }

  /** The fields of the request that were refused, by JSON Pointers (RFC 6901), the one that the sentence names first. */
  get faults(): readonly { pointer: string; detail: string }[] {
    const { errors = [] } = this.type === 'validation' ? this.more : {};
    return errors as { pointer: string; detail: string }[];
  }
}

/** Makes an error of an answer that is none of 2xx, whoever gave it: a proxy in front answers no problem details. */
async function problemOf(response: Response): Promise<ProblemError> {
  const body: unknown = await response.json().catch(() => undefined);
  const { type, detail, ...more } = (body ?? {}) as { type?: unknown; detail?: unknown };
  const word = typeof type === 'string' ? type.replace('urn:notebridge:problem:', '') : 'unreadable-answer';
  const sentence = typeof detail === 'string' ? detail : `The service answered ${response.status} without a reason.`;
  return new ProblemError(response.status, word, sentence, more);
}
