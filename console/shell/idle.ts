import { useEffect } from 'react';
import { signOut, tellUse } from '../api/session.js';

const SIGNS = ['keydown', 'pointerdown', 'pointermove', 'wheel', 'touchstart'] as const;

/** Where all tabs of a browser note when it was last used, at most once in this many milliseconds. */
const LAST_SIGN = 'notebridge.last-sign';
const NOTE_MS = 1_000;

/** The service is told of use at most once in this many milliseconds. */
const TELL_MS = 60_000;

const lastSign = () => Number(localStorage.getItem(LAST_SIGN));

/** Notes that somebody uses this browser now. */
export function noteUse(): void {
  if (Date.now() - lastSign() > NOTE_MS) localStorage.setItem(LAST_SIGN, String(Date.now()));
}

/**
 * Tells the service of use, which ends the session without it, and signs out a browser that nobody used in any of its tabs:
 * the service may be down, and what is shown must go nevertheless (45 CFR 164.312(a)(2)(iii)).
 */
export function useAutomaticLogoff(idleMinutes: number): void {
  useEffect(() => {
    noteUse();
    let toldAt = Date.now();
    const take = () => {
      noteUse();
      if (Date.now() - toldAt < TELL_MS) return;
      toldAt = Date.now();
      void tellUse();
    };
    const looking = setInterval(() => {
      if (Date.now() - lastSign() > idleMinutes * 60_000)
        void signOut(`Nobody used this browser for ${idleMinutes} minutes, so it was signed out.`);
    }, 10_000);
    for (const sign of SIGNS) addEventListener(sign, take, { passive: true });
    return () => {
      clearInterval(looking);
      for (const sign of SIGNS) removeEventListener(sign, take);
    };
  }, [idleMinutes]);
}
