import { Suspense } from 'react';
import { Redirect, Route, Switch, useLocation } from 'wouter';
import { type Session, useSession } from '../api/session.js';
import { ErrorBoundary, LacksScope, Waiting } from '../parts/notes.js';
import { Loaded } from '../parts/read.js';
import { Faults } from './faults.js';
import { Frame } from './frame.js';
import { PAGES, type PageEntry, pagesFor } from './pages.js';
import { SignedIn, SignIn } from './sign-in.js';
import { titleOf } from './title.js';

/** The faults of the service, then the sign-in or the page of the address. */
export function App() {
  return (
    <>
      <Faults />
      <Signed />
    </>
  );
}

function Signed() {
  const query = useSession();
  // An open page stays while the service is unavailable.
  if (!query.data) return <Loaded query={query}>{() => <SignIn />}</Loaded>;
  const session = query.data;
  return (
    <Frame session={session}>
      <Switch>
        {PAGES.map((entry) => (
          <Route key={entry.path} path={entry.path === '/' ? '/' : `${entry.path}/*?`}>
            <Opened entry={entry} session={session} />
          </Route>
        ))}
        <Route path="/sign-in">
          <SignedIn />
        </Route>
        <Route>
          <title>Page not found · notebridge</title>
          <h1>Page not found</h1>
          <p>The console has no page at this URL. Choose one from the menu.</p>
        </Route>
      </Switch>
    </Frame>
  );
}

function Opened({ entry, session }: { entry: PageEntry; session: Session }) {
  const { path, title, scope, Page } = entry;
  const [at] = useLocation();
  const { scopes } = session.caller;
  const isMissing = scope !== undefined && !scopes.includes(scope);
  const [first] = pagesFor(scopes);
  if (isMissing && path === '/' && first) return <Redirect to={first.path} replace />;
  return (
    <>
      <title>{titleOf(entry, at)}</title>
      {isMissing ? (
        <>
          <h1>{title}</h1>
          <LacksScope scope={scope} />
        </>
      ) : (
        <ErrorBoundary key={path}>
          <Suspense fallback={<Waiting />}>
            <Page />
          </Suspense>
        </ErrorBoundary>
      )}
    </>
  );
}
