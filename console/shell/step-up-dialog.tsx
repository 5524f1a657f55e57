import { useMutation } from '@tanstack/react-query';
import { useEffect, useState } from 'react';
import type { Session } from '../api/session.js';
import { confirmKey, hasConfirmed, signInAddress, stepUp } from '../api/step-up.js';
import { Dialog } from '../parts/action.js';
import { Field } from '../parts/field.js';
import { ErrorNote } from '../parts/notes.js';

/** How often to check for a sign-in in the other tab, in milliseconds. */
const POLL_INTERVAL_MS = 2_000;

/** The form of a reason. */
const PURPOSE = '[A-Za-z0-9._:\\/\\|\\-]{1,128}';

/** Asks for a confirmation and a reason, then lets the request be repeated. */
export function StepUpDialog({ session }: { session: Session }) {
  const asked = stepUp.use();
  return asked && <Confirmation key={String(asked.needsSignIn)} asked={asked} session={session} />;
}

type Asked = NonNullable<ReturnType<typeof stepUp.get>>;

function Confirmation({ asked: { needsSignIn, answer }, session }: { asked: Asked; session: Session }) {
  const isPerson = session.caller.issuer !== null;
  const [isConfirmed, setConfirmed] = useState(!needsSignIn);
  const [before] = useState(session);
  useEffect(() => {
    if (isConfirmed || !isPerson) return;
    const check = () =>
      void hasConfirmed(before).then(
        (isDone) => isDone && setConfirmed(true),
        () => undefined,
      );
    const checking = setInterval(check, POLL_INTERVAL_MS);
    return () => clearInterval(checking);
  }, [isConfirmed, isPerson, before]);
  const attempt = useMutation({
    mutationFn: async (given: FormData) => {
      if (!isConfirmed) await confirmKey(String(given.get('key')).trim());
      answer(String(given.get('purpose')).trim());
    },
  });
  return (
    <Dialog
      title={needsSignIn ? 'Confirm your identity' : 'Give a reason'}
      close="Cancel"
      buttons={
        <button type="submit" className="primary" disabled={attempt.isPending || (isPerson && !isConfirmed)}>
          Continue
        </button>
      }
      onClose={() => answer()}
      onSubmit={(given) => attempt.mutate(given)}
    >
      <div className="fields">
        {needsSignIn && !isPerson && <Field label="API key" name="key" type="password" required />}
        {needsSignIn && isPerson && (
          <p role="status">
            {isConfirmed ? (
              'Your identity is confirmed. Continue.'
            ) : (
              <a className="button" target="_blank" rel="noreferrer" href={signInAddress('/console/sign-in', true)}>
                Sign in again (opens a tab)
              </a>
            )}
          </p>
        )}
        <Field
          label="Reason"
          name="purpose"
          required
          maxLength={128}
          pattern={PURPOSE}
          title="Letters, digits and . _ : / | - without spaces"
          aria-describedby="purpose-help"
        />
        <span id="purpose-help" className="help">
          A ticket id or a code, such as TICKET-1042, without names. The audit log records it.
        </span>
      </div>
      {attempt.error && <ErrorNote error={attempt.error} />}
    </Dialog>
  );
}
