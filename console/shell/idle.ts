import { useEffect } from 'react';
import { signOut, tellUse } from '../api/session.js';

const SIGNS = ['keydown', 'pointerdown', 'pointermove', 'wheel', 'touchstart'] as const;

/** The key under which all tabs of a browser store when it was last used. */
const LAST_SIGN = 'notebridge.last-sign';

/** Minimum interval between two such writes, in milliseconds. */
const NOTE_MS = 1_000;

/** Minimum interval between two reports of use to the service, in milliseconds. */
const TELL_MS = 60_000;

const lastSign = () => Number(localStorage.getItem(LAST_SIGN));

/** Stores that this browser is in use now. */
export function noteUse(): void {
  if (Date.now() - lastSign() > NOTE_MS) localStorage.setItem(LAST_SIGN, String(Date.now()));
}

/**
 * Tells the service about use, without which it ends the session, and signs out a browser that was unused in all its tabs:
 * the service may be down, and the shown data must go nevertheless (45 CFR 164.312(a)(2)(iii)).
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
    const checking = setInterval(() => {
      if (Date.now() - lastSign() > idleMinutes * 60_000)
        void signOut(`You were signed out, because this browser was unused for ${idleMinutes} minutes.`);
    }, 10_000);
    for (const sign of SIGNS) addEventListener(sign, take, { passive: true });
    return () => {
      clearInterval(checking);
      for (const sign of SIGNS) removeEventListener(sign, take);
    };
  }, [idleMinutes]);
}
