import { type ReactNode, type RefObject, useEffect, useRef } from 'react';
import { Link, useLocation } from 'wouter';
import { pauseLive, readAgain, useLiveUpdates, useOutdated } from '../api/live.js';
import { liveness } from '../api/queries.js';
import { type Session, signOut } from '../api/session.js';
import { usePassingTime } from '../parts/now.js';
import { HoldBanner } from './hold-banner.js';
import { useAutomaticLogoff } from './idle.js';
import { PAGES } from './pages.js';
import { StepUpDialog } from './step-up-dialog.js';

/** The navigation, who is signed in, and the page. */
export function Frame({ session, children }: { session: Session; children: ReactNode }) {
  useAutomaticLogoff(session.idleMinutes);
  usePassingTime();
  const isLive = session.caller.scopes.includes('operations');
  useLiveUpdates(isLive);
  const [at] = useLocation();
  const main = useRef<HTMLElement>(null);
  useFocusOn(main, at);
  return (
    <>
      <a className="skip" href="#page">
        Skip to the page
      </a>
      <header className="top">
        <Link href="/" className="brand">
          notebridge
        </Link>
        <div className="who">
          <ReadAgain />
          {isLive && <LiveControl />}
          <span className="key-name" title={`Scopes: ${session.caller.scopes.join(', ')}`}>
            {session.caller.name}
          </span>
          <button type="button" onClick={() => void signOut()}>
            Sign out
          </button>
        </div>
      </header>
      <div className="body">
        <nav aria-label="Pages">
          <ul>
            {PAGES.map(({ path, title }) => (
              <li key={path}>
                <Link href={path} aria-current={isBelow(at, path) ? 'page' : undefined}>
                  {title}
                </Link>
              </li>
            ))}
          </ul>
        </nav>
        <main id="page" tabIndex={-1} ref={main}>
          <HoldBanner mayRelease={session.caller.scopes.includes('admin')} />
          {children}
        </main>
      </div>
      <StepUpDialog session={session} />
    </>
  );
}

/** Who follows a link with the keyboard goes on where it leads; who goes through the navigation stays in it. */
function useFocusOn(main: RefObject<HTMLElement | null>, at: string): void {
  const before = useRef(at);
  useEffect(() => {
    if (before.current !== at && !document.activeElement?.closest('nav')) main.current?.focus();
    before.current = at;
  }, [main, at]);
}

const isBelow = (at: string, path: string) => at === path || (path !== '/' && at.startsWith(`${path}/`));

/** Readings of people and sessions are on record, so they are not made again unasked. */
function ReadAgain() {
  return (
    <span role="status">
      {useOutdated() && (
        <button type="button" onClick={() => void readAgain()}>
          Changed: read again
        </button>
      )}
    </span>
  );
}

const WORDS = { live: 'Live', connecting: 'Connecting…', paused: 'Paused' } as const;

function LiveControl() {
  const state = liveness.use();
  const isPaused = state === 'paused';
  return (
    <button
      type="button"
      className="live"
      data-state={state}
      aria-pressed={isPaused}
      title={isPaused ? 'Show changes as they come' : 'Stop changing what is shown'}
      onClick={() => pauseLive(!isPaused)}
    >
      {WORDS[state]}
    </button>
  );
}
