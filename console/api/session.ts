import { queryOptions, type UseQueryResult, useQuery } from '@tanstack/react-query';
import { NotebridgeError } from '../../client/notebridge-error.js';
import { api, body, isSignedOut, rememberCsrfToken, type Schemas, whenSignedOut, whenTokenStale } from './client.js';
import { liveness, queries } from './queries.js';
import { store } from './store.js';
import { loadWords } from './words.js';

export type Session = Schemas['BrowserSessionResponse'];
export type Scope = Session['caller']['scopes'][number];

/** How often the page checks its session, in milliseconds. */
const POLL_INTERVAL_MS = 30_000;

/** Maximum wait for the end of a session: if the clocks differ by weeks, a timer above 2^31 ms would fire immediately. */
const MAX_WAIT_MS = 86_400_000;

const SESSION = queryOptions({
  queryKey: ['session'],
  queryFn: ({ signal }) => readSession(signal),
  staleTime: Number.POSITIVE_INFINITY,
});

/**
 * The session of the browser; null if it is signed out. It is read regularly, because a page that reads nothing else would
 * not notice the end. While live updates are paused, it is read when the session expires.
 */
export function useSession(): UseQueryResult<Session | null> {
  const isPaused = liveness.use() === 'paused';
  return useQuery({
    ...SESSION,
    refetchIntervalInBackground: true,
    refetchInterval: ({ state: { data } }) =>
      data
        ? Math.max(POLL_INTERVAL_MS, isPaused ? Math.min(MAX_WAIT_MS, Date.parse(data.expiresAt) - Date.now()) : 0)
        : false,
  });
}

/** The scopes of the signed-in caller. */
export function useScopes(): readonly Scope[] {
  return useQuery(SESSION).data?.caller.scopes ?? [];
}

async function readSession(signal?: AbortSignal, isInUse = false): Promise<Session | null> {
  try {
    const headers = isInUse ? { 'notebridge-in-use': 'true' } : {};
    const session = await body(api.GET('/v1/browser-session', { signal, headers }));
    rememberCsrfToken(session.csrfToken);
    await loadWords(signal);
    return session;
  } catch (error) {
    if (isSignedOut(error)) return null;
    throw error;
  }
}

/** Tells the service that this browser is in use, because it ends unused sessions. */
export async function tellUse(): Promise<void> {
  if (queries.getQueryData(SESSION.queryKey)) await readAgain(true).catch(() => undefined);
}

/** Reads the session again, because another tab may have signed in since. After a sign-out it stays signed out. */
export async function readAgain(isInUse = false): Promise<Session | null> {
  const session = await readSession(undefined, isInUse);
  const before = queries.getQueryData<Session | null>(SESSION.queryKey);
  if (!session || !before) return null;
  if (idOf(before) !== idOf(session)) forget('Another user signed in with this browser, so you were signed out.');
  become(session);
  return session;
}

const idOf = ({ caller: { issuer, id } }: Session) => `${issuer} ${id}`;

/** Exchanges a key for a session; the key is not stored. @throws {NotebridgeError} also if the cookie is rejected */
export async function signIn(key: string): Promise<void> {
  if (!LIKE_A_KEY.test(key)) throw new NotebridgeError('unauthenticated', 401, NOT_KNOWN);
  const headers = { authorization: `Bearer ${key}` };
  await api.POST('/v1/browser-session', { headers });
  const session = await readSession();
  if (!session) throw new NotebridgeError('cookie-refused', 401, COOKIE_REFUSED);
  become(session);
}

/** The form of all keys. A browser cannot send other characters in a header. */
const LIKE_A_KEY = /^[\x21-\x7e]{1,512}$/;

/** In the words of the service. */
const NOT_KNOWN = 'The key is unknown, expired or revoked. Ask an administrator for a new key.';

/** Safari accepts Secure cookies only over https, also from localhost. */
const COOKIE_REFUSED =
  'The key is valid, but this browser accepts no cookies over http. Open the console over https. On the machine of the service, use Chrome or Firefox at 127.0.0.1.';

/** Why the last session ended, for the sign-in page. */
export const lastEnd = store<string | undefined>(undefined);

/** How long to wait before a failed sign-out is sent again, in milliseconds. */
const TELL_AGAIN_MS = 2_000;

const NOT_TOLD =
  'The data on this page was deleted, but your session has not ended yet, because the service cannot be reached. Leave the page open: signing out is retried.';

/** Ends the session here and at the service. Deletes all read data immediately. */
export async function signOut(why = 'You are signed out.'): Promise<void> {
  forget(why);
  while (!queries.getQueryData(SESSION.queryKey)) {
    const isTold = await api.DELETE('/v1/browser-session').then(() => true, isSignedOut);
    lastEnd.set(isTold ? why : NOT_TOLD);
    if (isTold) return;
    await new Promise((resolve) => setTimeout(resolve, TELL_AGAIN_MS));
  }
}

/** Sets the session. Cancels a read in flight, which would return the earlier session. */
function become(session: Session | null): void {
  void queries.cancelQueries({ queryKey: SESSION.queryKey });
  queries.setQueryData(SESSION.queryKey, session);
}

/** Deletes all read data. The URL stays, so that a new sign-in opens the same page. */
function forget(why: string): void {
  if (!queries.getQueryData(SESSION.queryKey)) return;
  lastEnd.set(why);
  become(null);
  queries.removeQueries({ predicate: ({ queryKey: [name] }) => name !== SESSION.queryKey[0] });
}

whenTokenStale(() => readAgain());
whenSignedOut(() =>
  forget(
    'Your session has ended: it was unused for too long, an administrator ended it, or its key was revoked. Please sign in again.',
  ),
);
