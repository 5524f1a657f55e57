import { useEffect, useEffectEvent, useRef, useSyncExternalStore } from 'react';
import { isOnRecord, liveness, queries } from './queries.js';
import { store } from './store.js';

/** How long to wait before a rejected stream is opened again, in milliseconds. */
const AGAIN_MS = 5_000;

/** Pauses and resumes live updates. */
export function pauseLive(pause: boolean): void {
  liveness.set(pause ? 'paused' : 'connecting');
  if (!pause) noteChange();
}

/** The time of the last change that the page may show, as `Date.now()` returns it. */
const changedAt = store(0);

/** Reads the shown data again after a change, except reads that the audit log records. */
function noteChange(): void {
  changedAt.set(Date.now());
  void queries.invalidateQueries({
    predicate: (query) => !isOnRecord(query) && query.queryKey[0] !== 'overview' && query.queryKey[0] !== 'session',
  });
}

const cache = queries.getQueryCache();
const onRecordShown = () => cache.findAll({ type: 'active', predicate: isOnRecord });

/** True if something changed after the shown people and sessions were read. */
export function useOutdated(): boolean {
  const since = changedAt.use();
  return useSyncExternalStore(
    (listener) => cache.subscribe(listener),
    () => onRecordShown().some(({ state }) => state.dataUpdatedAt > 0 && state.dataUpdatedAt < since),
  );
}

/** Reads the shown people and sessions again. */
export const readAgain = (): Promise<void> => queries.refetchQueries({ type: 'active', predicate: isOnRecord });

/**
 * Follows server-sent events while there is an address and the page is visible, because each stream takes one of the six
 * connections that a browser opens to a host with HTTP/1.1.
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
        // The browser reconnects unless it was rejected: then the session has ended, or the service is unavailable.
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
 * Follows the overview. Each event contains what the overview page and the banner of faults show. A change of the feed's
 * cursor means that other data may have changed.
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
