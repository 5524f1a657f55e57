import { useEffect } from 'react';
import { store } from '../api/store.js';

/** Milliseconds between two moments in which the page says anew how long ago something was. */
const TICK_MS = 20_000;

const ticked = store(Date.now());

/** Now, as `Date.now()` gives it; whoever uses it is shown again as time goes by. */
export function useNow(): number {
  ticked.use();
  // What has just come would lie ahead of the last tick.
  return Date.now();
}

/** Lets time go by while the page is seen, also where the reader has stopped what changes. */
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
