import { createClient } from '../../client/create-client.js';
import { errorOfAnswer, NotebridgeError } from '../../client/notebridge-error.js';

export type { Schemas } from '../../client/methods.js';

/** The CSRF token of the browser session, which each change must carry; empty before the sign-in. */
let csrfToken = '';

const CSRF_HEADER = 'x-csrf-token';

/** Called when the service no longer accepts the session. */
let onSignedOut: () => void = () => undefined;

/** The problems of a request that needs a recent sign-in or a reason. */
const STEP_UPS: ReadonlySet<string> = new Set(['step-up-required', 'purpose-required']);

/** Asks for a confirmation and a reason. @returns the reason; undefined if the request must not be repeated */
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
export const isSignedOut = (error: unknown): boolean => error instanceof NotebridgeError && error.status === 401;

/**
 * The error of a failed call. Reports the end of the session, unless the call was made in an earlier session: another
 * user may have signed in since.
 *
 * @param askedBy the token of the session in which the call was made
 */
export async function refusalOf(response: Response, askedBy: string | null): Promise<NotebridgeError> {
  const problem = await errorOfAnswer(response);
  if (isSignedOut(problem) && askedBy === csrfToken) onSignedOut();
  return problem;
}

/** Sends a request of this session, and repeats it after a confirmation if it needs one. */
async function sendInSession(input: RequestInfo | URL, init?: RequestInit): Promise<Response> {
  const request = new Request(input, init);
  request.headers.set(CSRF_HEADER, csrfToken);
  const again = request.clone();
  const response = await fetch(request);
  // The client follows a redirect, as it does for a renamed id.
  if (response.ok || response.type === 'opaqueredirect') return response;
  const problem = await refusalOf(response, request.headers.get(CSRF_HEADER));
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
}

/**
 * All calls of the API. The queries retry failed reads; other calls are retried by hand. A call has no time limit, because
 * it may wait for a confirmation.
 */
export const api = createClient({
  url: location.origin,
  attempts: 1,
  answerTimeoutMs: Number.POSITIVE_INFINITY,
  fetch: sendInSession,
});

/** The body of an answer, which the type of the call guarantees. */
export async function body<T>(call: Promise<{ data: T }>): Promise<T> {
  return (await call).data;
}
