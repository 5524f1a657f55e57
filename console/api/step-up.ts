import { api, body, rememberCsrfToken, whenStepUpNeeded } from './client.js';
import { readAgain, type Session } from './session.js';
import { store } from './store.js';

/** A request that waits until somebody has confirmed who they are and why. */
interface StepUp {
  /** The last sign-in is too old; otherwise only the reason is missing. */
  needsSignIn: boolean;
  /** @param purpose undefined if the request shall not be repeated */
  answer: (purpose?: string) => void;
}

export const stepUp = store<StepUp | undefined>(undefined);

whenStepUpNeeded(
  (needsSignIn) =>
    new Promise((resolve) => {
      stepUp.set({
        needsSignIn,
        answer(purpose) {
          stepUp.set(undefined);
          resolve(purpose);
        },
      });
    }),
);

/** Shows the session's key again. @throws {NotebridgeError} `wrong-key` */
export async function confirmKey(key: string): Promise<void> {
  const { csrfToken } = await body(api.POST('/v1/browser-session/step-up', { body: { key } }));
  rememberCsrfToken(csrfToken);
}

/** True if somebody has signed in at the provider since. */
export async function hasConfirmed(before: Session): Promise<boolean> {
  const now = await readAgain();
  return now !== null && now.authenticatedAt !== before.authenticatedAt;
}

/** Where a person signs in at the provider, and comes back to a page of the console. */
export const signInAddress = (returnTo: string, isFresh = false): string =>
  `/v1/sign-in?${new URLSearchParams({ returnTo, ...(isFresh && { fresh: 'true' }) })}`;
