import { useEffect, useEffectEvent } from 'react';

const QUESTION = 'Your changes are not sent yet and will be lost. Leave this page?';

/** Asks before the page is left with unsent changes, by a link or by the browser. Filters in the URL may change. */
export function useUnsavedGuard(hasChanges: () => boolean): void {
  const isUnsaved = useEffectEvent(hasChanges);
  useEffect(() => {
    const warn = (event: BeforeUnloadEvent) => isUnsaved() && event.preventDefault();
    // All other navigations unload the page.
    const ask = (event: NavigateEvent) => {
      const { destination, cancelable } = event;
      const isLeft = destination.sameDocument && new URL(destination.url).pathname !== location.pathname;
      if (isLeft && cancelable && isUnsaved() && !confirm(QUESTION)) event.preventDefault();
    };
    addEventListener('beforeunload', warn);
    window.navigation?.addEventListener('navigate', ask);
    return () => {
      removeEventListener('beforeunload', warn);
      window.navigation?.removeEventListener('navigate', ask);
    };
  }, []);
}
