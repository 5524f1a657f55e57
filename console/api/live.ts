import { queryOptions, useQuery } from '@tanstack/react-query';
import { useEffect, useRef, useSyncExternalStore } from 'react';
import { api, body } from './client.js';
import { isOnRecord, liveness, queries, usePolling } from './queries.js';
import { store } from './store.js';

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

/** How often to read the overview, in milliseconds. The service reads it as often for all its callers together. */
const POLL_INTERVAL_MS = 2_000;

export const OVERVIEW = queryOptions({
  queryKey: ['overview'],
  queryFn: ({ signal }) => body(api.GET('/v1/overview', { signal })),
  refetchOnWindowFocus: false,
});

/**
 * Follows the overview while the page is visible. It contains what the overview page and the banner of faults show. A change
 * of the feed's cursor means that other data may have changed.
 */
export function useLiveUpdates(isAllowed: boolean): void {
  const isPaused = liveness.use() === 'paused';
  const refetchInterval = usePolling(POLL_INTERVAL_MS);
  const enabled = isAllowed && !isPaused;
  const { data, failureCount } = useQuery({ ...OVERVIEW, enabled, refetchInterval });
  const cursor = useRef<string | null>(undefined);
  useEffect(() => {
    if (!data) return;
    queries.setQueryData(['health'], data);
    if (cursor.current !== undefined && cursor.current !== data.feedCursor) noteChange();
    cursor.current = data.feedCursor;
  }, [data]); // the same object until something changes
  const isLive = data !== undefined && failureCount === 0;
  useEffect(() => {
    if (!isPaused) liveness.set(isLive ? 'live' : 'connecting');
  }, [isPaused, isLive]);
}
