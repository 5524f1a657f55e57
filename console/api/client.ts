import { createClient } from '../../client/create-client.js';
import { errorOfAnswer, NotebridgeError } from '../../client/notebridge-error.js';

export type { Schemas } from '../../client/methods.js';

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
export const isSignedOut = (error: unknown): boolean => error instanceof NotebridgeError && error.status === 401;

/**
 * What a call failed with. That the session has ended is told whoever made the call, unless that was asked in the session
 * before: somebody may have signed in again since.
 *
 * @param askedBy the token of the session in which the call was made
 */
export async function refusalOf(response: Response, askedBy: string | null): Promise<NotebridgeError> {
  const problem = await errorOfAnswer(response);
  if (isSignedOut(problem) && askedBy === csrfToken) onSignedOut();
  return problem;
}

/** Sends a request of this session, and again once somebody has confirmed who they are. */
async function sendInSession(input: RequestInfo | URL): Promise<Response> {
  const request = new Request(input);
  request.headers.set(CSRF_HEADER, csrfToken);
  const again = request.clone();
  const response = await fetch(request);
  if (response.ok) return response;
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
 * Every call of the API. The queries repeat what fails, and the reader everything else. A call has no time limit, because
 * it may wait for somebody to confirm who they are.
 */
export const api = createClient({
  url: location.origin,
  attempts: 1,
  answerTimeoutMs: Number.POSITIVE_INFINITY,
  fetch: sendInSession,
});

/** What a call answered; that it has a body is known from its type. */
export async function body<T>(call: Promise<{ data: T }>): Promise<T> {
  return (await call).data;
}
