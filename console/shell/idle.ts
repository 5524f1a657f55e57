import { useEffect } from 'react';
import { signOut } from '../api/session.js';

/** Milliseconds without a key, a pointer or a touch after which a browser is signed out (45 CFR 164.312(a)(2)(iii)). */
const IDLE_MS = 30 * 60_000;

const SIGNS = ['keydown', 'pointerdown', 'pointermove', 'wheel', 'touchstart'] as const;

/** Where all tabs of a browser note when it was last used, at most once in this many milliseconds. */
const LAST_SIGN = 'notebridge.last-sign';
const NOTE_MS = 1_000;

const lastSign = () => Number(localStorage.getItem(LAST_SIGN));

/** Notes that somebody uses this browser now. */
export function noteUse(): void {
  if (Date.now() - lastSign() > NOTE_MS) localStorage.setItem(LAST_SIGN, String(Date.now()));
}

/** Signs a browser out that nobody used in any of its tabs, whatever the pages read by themselves, also while it was closed. */
export function useAutomaticLogoff(): void {
  useEffect(() => {
    const look = () => {
      if (Date.now() - lastSign() > IDLE_MS)
        void signOut('Nobody used this browser for half an hour, so it was signed out.');
    };
    look();
    const looking = setInterval(look, 10_000);
    for (const sign of SIGNS) addEventListener(sign, noteUse, { passive: true });
    return () => {
      clearInterval(looking);
      for (const sign of SIGNS) removeEventListener(sign, noteUse);
    };
  }, []);
}
