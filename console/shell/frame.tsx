import { lazy, type ReactNode, type RefObject, Suspense, useEffect, useRef, useState } from 'react';
import { Link, useLocation } from 'wouter';
import { pauseLive, readAgain, useLiveUpdates, useOutdated } from '../api/live.js';
import { liveness } from '../api/queries.js';
import { type Session, signOut } from '../api/session.js';
import { chooseZone, LOCAL_ZONE, ZONES, zone } from '../api/zone.js';
import { Select } from '../parts/field.js';
import { ErrorBoundary } from '../parts/notes.js';
import { usePassingTime } from '../parts/now.js';
import { script } from '../parts/script.js';
import { HoldBanner } from './hold-banner.js';
import { useAutomaticLogoff } from './idle.js';
import { pagesFor } from './pages.js';
import { StepUpDialog } from './step-up-dialog.js';

/** The navigation, the signed-in caller, the search and the page. */
export function Frame({ session, children }: { session: Session; children: ReactNode }) {
  const { name, scopes } = session.caller;
  useAutomaticLogoff(session.idleMinutes);
  usePassingTime();
  const isLive = scopes.includes('operations');
  useLiveUpdates(isLive);
  const [at] = useLocation();
  const main = useRef<HTMLElement>(null);
  const menu = useRef<HTMLButtonElement>(null);
  const [menuAt, setMenuAt] = useState<string>();
  useFocusOn(main, menu, at);
  // The menu of a narrow screen closes when a link leads to another page.
  const isMenuOpen = menuAt === at;
  return (
    <>
      <a className="skip" href="#page">
        Skip to the content
      </a>
      <header className="top">
        <Link href="/" className="brand">
          notebridge
        </Link>
        <button
          type="button"
          className="menu"
          ref={menu}
          aria-expanded={isMenuOpen}
          aria-controls="pages"
          onClick={() => setMenuAt(isMenuOpen ? undefined : at)}
        >
          Menu
        </button>
        <Search />
        <div className="who">
          <ReadAgain />
          {isLive && <LiveControl />}
          <span className="key-name" title={`Scopes: ${scopes.join(', ')}`}>
            {name}
          </span>
          <button type="button" onClick={() => void signOut()}>
            Sign out
          </button>
        </div>
      </header>
      <div className="body">
        <nav id="pages" aria-label="Pages" data-open={isMenuOpen}>
          <ul>
            {pagesFor(scopes).map(({ path, title }) => (
              <li key={path}>
                <Link href={path} aria-current={isBelow(at, path) ? 'page' : undefined}>
                  {title}
                </Link>
              </li>
            ))}
          </ul>
          <ZoneChoice />
        </nav>
        <main id="page" tabIndex={-1} ref={main}>
          <HoldBanner mayRelease={scopes.includes('admin')} />
          {children}
        </main>
      </div>
      <StepUpDialog session={session} />
    </>
  );
}

/**
 * Moves the focus to the page that a link of another page opens. After a link of the navigation it stays there, unless
 * the navigation was a menu, which is closed now.
 */
function useFocusOn(main: RefObject<HTMLElement | null>, menu: RefObject<HTMLElement | null>, at: string): void {
  const before = useRef(at);
  useEffect(() => {
    const isInNavigation = document.activeElement?.closest('nav') && menu.current?.offsetParent === null;
    if (before.current !== at && !isInNavigation) main.current?.focus();
    before.current = at;
  }, [main, menu, at]);
}

const isBelow = (at: string, path: string) => at === path || (path !== '/' && at.startsWith(`${path}/`));

const SearchDialog = lazy(() => script(() => import('./search-dialog.js')));

const isMac = navigator.platform.startsWith('Mac');

/** Opens the search with a button, or with Ctrl-K. */
function Search() {
  const [isOpen, setOpen] = useState(false);
  useEffect(() => {
    const open = (event: KeyboardEvent) => {
      const { key, ctrlKey, metaKey, altKey, shiftKey } = event;
      if (key.toLowerCase() !== 'k' || !(ctrlKey || metaKey) || altKey || shiftKey) return;
      event.preventDefault();
      // Another dialog keeps its own focus.
      if (!document.querySelector('dialog[open]')) setOpen(true);
    };
    addEventListener('keydown', open);
    return () => removeEventListener('keydown', open);
  }, []);
  return (
    <>
      <button type="button" className="search" aria-keyshortcuts="Control+K Meta+K" onClick={() => setOpen(true)}>
        <span>
          Find<span className="rest"> by id or email</span>
        </span>
        <kbd aria-hidden>{isMac ? '⌘K' : 'Ctrl K'}</kbd>
      </button>
      {isOpen && (
        <ErrorBoundary>
          <Suspense>
            <SearchDialog onClose={() => setOpen(false)} />
          </Suspense>
        </ErrorBoundary>
      )}
    </>
  );
}

/** Chooses the zone of all times, where the browser's own is another than UTC. */
function ZoneChoice() {
  const chosen = zone.use();
  if (LOCAL_ZONE === 'UTC') return null;
  return (
    <Select label="Time zone" options={ZONES} value={chosen} onChange={(next) => chooseZone(next ?? LOCAL_ZONE)} />
  );
}

/** Reading people and sessions is recorded in the audit log, so it is repeated only on request. */
function ReadAgain() {
  return (
    <span role="status">
      {useOutdated() && (
        <button type="button" onClick={() => void readAgain()}>
          New data: reload
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
      title={isPaused ? 'Resume live updates' : 'Pause live updates'}
      onClick={() => pauseLive(!isPaused)}
    >
      {WORDS[state]}
    </button>
  );
}
