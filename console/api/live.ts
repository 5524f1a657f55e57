import { useEffect, useEffectEvent, useRef, useSyncExternalStore } from 'react';
import { isOnRecord, liveness, queries } from './queries.js';
import { store } from './store.js';

/** Milliseconds after which a stream that was refused is asked for again. */
const AGAIN_MS = 5_000;

/** Stops and resumes what changes under the reader's eyes. */
export function pauseLive(pause: boolean): void {
  liveness.set(pause ? 'paused' : 'connecting');
  if (!pause) noteChange();
}

/** When something changed that the page may show, as `Date.now()` gives it. */
const changedAt = store(0);

/** Something that is on the screen may have changed: it is read again where that is not on record. */
function noteChange(): void {
  changedAt.set(Date.now());
  void queries.invalidateQueries({
    predicate: (query) => !isOnRecord(query) && query.queryKey[0] !== 'overview' && query.queryKey[0] !== 'session',
  });
}

const cache = queries.getQueryCache();
const onRecordShown = () => cache.findAll({ type: 'active', predicate: isOnRecord });

/** Whether something changed since what the page shows of people and sessions was read. */
export function useOutdated(): boolean {
  const since = changedAt.use();
  return useSyncExternalStore(
    (listener) => cache.subscribe(listener),
    () => onRecordShown().some(({ state }) => state.dataUpdatedAt > 0 && state.dataUpdatedAt < since),
  );
}

/** Reads again what the page shows of people and sessions. */
export const readAgain = (): Promise<void> => queries.refetchQueries({ type: 'active', predicate: isOnRecord });

/**
 * Follows server-sent events for as long as there is an address and the page is seen: each stream takes one of the six
 * connections that a browser has to a host by HTTP/1.1.
 *
 * @param name of the events
 */
export function useEvents<T>(
  address: string | false | undefined,
  name: string,
  onEvent: (data: T) => void,
  onBreak: () => void = () => undefined,
): void {
  const take = useEffectEvent(onEvent);
  const broken = useEffectEvent(onBreak);
  useEffect(() => {
    if (!address) return;
    let events: EventSource | undefined;
    let again: ReturnType<typeof setTimeout> | undefined;
    const close = () => {
      clearTimeout(again);
      events?.close();
      events = undefined;
    };
    const open = () => {
      const opened = new EventSource(address);
      events = opened;
      opened.addEventListener(name, ({ data }: MessageEvent<string>) => take(JSON.parse(data) as T));
      opened.addEventListener('error', () => {
        broken();
        // The browser itself asks again unless it was refused: then the session has ended, or the service is away.
        if (opened.readyState !== EventSource.CLOSED) return;
        void queries.invalidateQueries({ queryKey: ['session'] });
        again = setTimeout(open, AGAIN_MS);
      });
    };
    const followWhileSeen = () => {
      if (document.hidden) close();
      else if (!events) open();
    };
    followWhileSeen();
    document.addEventListener('visibilitychange', followWhileSeen);
    return () => {
      document.removeEventListener('visibilitychange', followWhileSeen);
      close();
    };
  }, [address, name]);
}

/**
 * Follows the overview: each event is what the overview page shows, and a change of the feed's cursor means that
 * something else may have changed.
 */
export function useLiveUpdates(isAllowed: boolean): void {
  const isPaused = liveness.use() === 'paused';
  const cursor = useRef<string>(undefined);
  useEvents<{ feedCursor?: string; causes: unknown[] }>(
    isAllowed && !isPaused && '/v1/overview',
    'overview',
    (overview) => {
      liveness.set('live');
      queries.setQueryData(['overview'], overview);
      queries.setQueryData(['health'], overview);
      if (cursor.current !== undefined && cursor.current !== overview.feedCursor) noteChange();
      cursor.current = overview.feedCursor;
    },
    () => liveness.set('connecting'),
  );
}
