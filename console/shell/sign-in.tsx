import { useMutation } from '@tanstack/react-query';
import { useEffect, useRef } from 'react';
import { useLocation, useSearch } from 'wouter';
import { api } from '../api/client.js';
import { lastEnd, signIn } from '../api/session.js';
import { signInAddress } from '../api/step-up.js';
import { ErrorNote } from '../parts/notes.js';
import { Read } from '../parts/read.js';

/** Why a sign-in at the provider failed, by the codes of the service. */
const REFUSALS: Readonly<Record<string, string>> = {
  expired: 'This sign-in was started in another browser, or took longer than ten minutes. Please try again.',
  'no-scopes': 'None of your groups may use notebridge. Ask your administrator to add you to one that may.',
  'not-configured': 'Sign-in at a provider is not configured: OIDC_ISSUER or PUBLIC_URL is missing.',
  'provider-refused': 'The provider did not sign you in. Please try again, or ask your administrator.',
  'provider-unavailable': 'The provider does not answer. Please try again later.',
};

/** The sign-in: at the OpenID provider, or with a key. */
export function SignIn() {
  const why = lastEnd.use();
  return (
    <main className="sign-in">
      <title>Sign in · notebridge</title>
      <h1>notebridge</h1>
      {why !== undefined && <p role="status">{why}</p>}
      <Refusal />
      <Read name={['session', 'methods']} call={() => api.GET('/v1/sign-in/methods')}>
        {({ provider, key }) => (
          <>
            {provider !== null && <ProviderLink provider={provider} />}
            {key && <KeyForm isFirst={provider === null} />}
          </>
        )}
      </Read>
    </main>
  );
}

/** The page that opens after a sign-in in a separate tab. */
export function SignedIn() {
  const isRefused = new URLSearchParams(useSearch()).has('refused');
  return (
    <>
      <title>Signed in · notebridge</title>
      <h1>{isRefused ? 'Not confirmed' : 'Signed in'}</h1>
      <Refusal />
      <p>Close this tab, and continue in the tab that asked you to sign in.</p>
    </>
  );
}

function Refusal() {
  const code = new URLSearchParams(useSearch()).get('refused');
  const sentence = code && REFUSALS[code];
  return (
    sentence && (
      <div className="note error" role="alert">
        <p>{sentence}</p>
      </div>
    )
  );
}

/** A link, not a button, because the browser leaves this page for the provider's. */
function ProviderLink({ provider }: { provider: string }) {
  const [at] = useLocation();
  const search = useSearch();
  const page = at === '/sign-in' ? '/' : `${at}${search && `?${search}`}`;
  return (
    <p className="card">
      <a className="button primary" href={signInAddress(`/console${page}`)}>
        Sign in with {provider}
      </a>
    </p>
  );
}

/** Exchanges an API key for a cookie that no script can read. */
function KeyForm({ isFirst }: { isFirst: boolean }) {
  const [at, navigate] = useLocation();
  const attempt = useMutation({ mutationFn: signIn, onSuccess: () => at === '/sign-in' && navigate('/') });
  const field = useRef<HTMLInputElement>(null);
  useEffect(() => {
    if (isFirst) field.current?.focus();
  }, [isFirst]);
  return (
    <form
      className="card"
      onSubmit={(event) => {
        event.preventDefault();
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
        The scopes of the key decide which pages you can use. The demo prints a key;{' '}
        <code>npx notebridge keys create NAME --scopes …</code> creates one.
      </p>
      <button type="submit" className={isFirst ? 'primary' : undefined} disabled={attempt.isPending}>
        {attempt.isPending ? 'Signing in…' : 'Sign in'}
      </button>
      {attempt.error && <ErrorNote error={attempt.error} />}
    </form>
  );
}
