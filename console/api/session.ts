import { queryOptions, type UseQueryResult, useQuery } from '@tanstack/react-query';
import { NotebridgeError } from '../../client/notebridge-error.js';
import { api, body, isSignedOut, rememberCsrfToken, type Schemas, whenSignedOut, whenTokenStale } from './client.js';
import { liveness, queries } from './queries.js';
import { store } from './store.js';
import { loadWords } from './words.js';

export type Session = Schemas['BrowserSessionResponse'];
export type Scope = Session['caller']['scopes'][number];

/** How often the page asks whether its session still holds. */
const LOOK_MS = 30_000;

/** Maximum wait for the end of a session: if the clocks differ by weeks, a timer above 2^31 ms would fire immediately. */
const MAX_WAIT_MS = 86_400_000;

const SESSION = queryOptions({
  queryKey: ['session'],
  queryFn: ({ signal }) => readSession(signal),
  staleTime: Number.POSITIVE_INFINITY,
});

/**
 * Who is signed in: null for nobody. That is asked again and again, since a page that reads nothing would not hear of the
 * end; while the reader has stopped what changes, it is asked when the session ends by itself.
 */
export function useSession(): UseQueryResult<Session | null> {
  const isPaused = liveness.use() === 'paused';
  return useQuery({
    ...SESSION,
    refetchIntervalInBackground: true,
    refetchInterval: ({ state: { data } }) =>
      data ? Math.max(LOOK_MS, isPaused ? Math.min(MAX_WAIT_MS, Date.parse(data.expiresAt) - Date.now()) : 0) : false,
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

/** Tells the service that somebody uses this browser: it ends sessions that nobody uses. */
export async function tellUse(): Promise<void> {
  if (queries.getQueryData(SESSION.queryKey)) await readAgain(true).catch(() => undefined);
}

/** Reads who is signed in now, because another tab may have signed in since. After a sign-out it signs nobody in again. */
export async function readAgain(isInUse = false): Promise<Session | null> {
  const session = await readSession(undefined, isInUse);
  const before = queries.getQueryData<Session | null>(SESSION.queryKey);
  if (!session || !before) return null;
  if (idOf(before) !== idOf(session)) forget('Somebody else signed in to this browser.');
  become(session);
  return session;
}

const idOf = ({ caller: { issuer, id } }: Session) => `${issuer} ${id}`;

/** Exchanges a key for a session; the key itself is kept nowhere. @throws {NotebridgeError} also if the cookie is refused */
export async function signIn(key: string): Promise<void> {
  if (!LIKE_A_KEY.test(key)) throw new NotebridgeError('unauthenticated', 401, NOT_KNOWN);
  const headers = { authorization: `Bearer ${key}` };
  await api.POST('/v1/browser-session', { headers });
  const session = await readSession();
  if (!session) throw new NotebridgeError('cookie-refused', 401, COOKIE_REFUSED);
  become(session);
}

/** What the service takes for a key at all; what else there is, no browser sends in a header. */
const LIKE_A_KEY = /^[\x21-\x7e]{1,512}$/;

/** In the words of the service. */
const NOT_KNOWN = 'The key is unknown, expired or revoked. Ask an administrator for another.';

/** Safari takes a cookie with Secure from https alone, also of localhost. */
const COOKIE_REFUSED =
  'The key is good, but this browser did not keep the session: by http some take no cookie. Open the console by https, or in Chrome or Firefox on the machine itself, at 127.0.0.1.';

/** Why the last session ended, for the page on which one signs in again. */
export const lastEnd = store<string | undefined>(undefined);

/** Milliseconds until the service is told again of a sign-out that it did not hear of. */
const TELL_AGAIN_MS = 2_000;

const NOT_TOLD =
  'This page has forgotten what it showed, but the service could not be told that you signed out. Leave the page open: it tells the service again until that answers.';

/** Ends the session here and at the service. What was read is forgotten at once. */
export async function signOut(why = 'You are signed out.'): Promise<void> {
  forget(why);
  while (!queries.getQueryData(SESSION.queryKey)) {
    const isTold = await api.DELETE('/v1/browser-session').then(() => true, isSignedOut);
    lastEnd.set(isTold ? why : NOT_TOLD);
    if (isTold) return;
    await new Promise((resolve) => setTimeout(resolve, TELL_AGAIN_MS));
  }
}

/** Whoever is signed in from now on. A look that is under way was taken before: what it finds is of the former session. */
function become(session: Session | null): void {
  void queries.cancelQueries({ queryKey: SESSION.queryKey });
  queries.setQueryData(SESSION.queryKey, session);
}

/** The address stays, so that whoever signs in again is on the same page. */
function forget(why: string): void {
  if (!queries.getQueryData(SESSION.queryKey)) return;
  lastEnd.set(why);
  become(null);
  queries.removeQueries({ predicate: ({ queryKey: [name] }) => name !== SESSION.queryKey[0] });
}

whenTokenStale(() => readAgain());
whenSignedOut(() =>
  forget(
    'Your session has ended: nobody used it for too long, somebody ended it, or its key was revoked. Please sign in again.',
  ),
);
