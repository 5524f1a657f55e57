import { useEffect } from 'react';
import { store } from '../api/store.js';

/** How often the page updates ages, in milliseconds. */
const TICK_MS = 20_000;

const ticked = store(Date.now());

/** The current time, as `Date.now()` returns it; a component that uses it is rendered again regularly. */
export function useNow(): number {
  ticked.use();
  // A new event would be later than the last tick.
  return Date.now();
}

/** Updates ages while the page is visible, also while live updates are paused. */
export function usePassingTime(): void {
  useEffect(() => {
    const tick = () => {
      if (!document.hidden) ticked.set(Date.now());
    };
    const ticking = setInterval(tick, TICK_MS);
    document.addEventListener('visibilitychange', tick);
    return () => {
      clearInterval(ticking);
      document.removeEventListener('visibilitychange', tick);
    };
  }, []);
}
