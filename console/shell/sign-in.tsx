import { useMutation } from '@tanstack/react-query';
import { useEffect, useRef } from 'react';
import { lastEnd, signIn } from '../api/session.js';
import { ErrorNote } from '../parts/notes.js';
import { noteUse } from './idle.js';

/** Takes an API key once; from then on a cookie that no script can read stands for it. */
export function SignIn() {
  const attempt = useMutation({ mutationFn: signIn });
  const why = lastEnd.use();
  const field = useRef<HTMLInputElement>(null);
  useEffect(() => field.current?.focus(), []);
  return (
    <main className="sign-in">
      <title>Sign in · notebridge</title>
      <h1>notebridge</h1>
      {why !== undefined && <p role="status">{why}</p>}
      <form
        className="card"
        onSubmit={(event) => {
          event.preventDefault();
          noteUse();
          attempt.mutate(String(new FormData(event.currentTarget).get('key')).trim());
        }}
      >
        <label htmlFor="key">API key</label>
        <input
          id="key"
          ref={field}
          name="key"
          type="password"
          autoComplete="off"
          spellCheck={false}
          required
          aria-describedby="key-help"
        />
        <p id="key-help" className="help">
          The pages show what its scopes allow. The demo prints its key; for good,{' '}
          <code>npx notebridge keys create NAME --scopes …</code> makes one.
        </p>
        <button type="submit" className="primary" disabled={attempt.isPending}>
          {attempt.isPending ? 'Signing in…' : 'Sign in'}
        </button>
        {attempt.error && <ErrorNote error={attempt.error} />}
      </form>
    </main>
  );
}
