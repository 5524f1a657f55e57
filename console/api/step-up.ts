import { api, body, rememberCsrfToken, whenStepUpNeeded } from './client.js';
import { readAgain, type Session } from './session.js';
import { store } from './store.js';

/** A request that waits for a confirmation and a reason. */
interface StepUp {
  /** The last sign-in is too old; otherwise only the reason is missing. */
  needsSignIn: boolean;
  /** @param purpose undefined if the request must not be repeated */
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

/** Confirms the session with its key. @throws {NotebridgeError} `wrong-key` */
export async function confirmKey(key: string): Promise<void> {
  const { csrfToken } = await body(api.POST('/v1/browser-session/step-up', { body: { key } }));
  rememberCsrfToken(csrfToken);
}

/** True if the user has signed in at the provider since. */
export async function hasConfirmed(before: Session): Promise<boolean> {
  const now = await readAgain();
  return now !== null && now.authenticatedAt !== before.authenticatedAt;
}

/** The address of a sign-in at the provider, which returns to a page of the console. */
export const signInAddress = (returnTo: string, isFresh = false): string =>
  `/v1/sign-in?${new URLSearchParams({ returnTo, ...(isFresh && { fresh: 'true' }) })}`;
