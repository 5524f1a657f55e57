import { type Query, QueryClient } from '@tanstack/react-query';
import { NotebridgeError } from '../../client/notebridge-error.js';
import { store } from './store.js';

type Liveness = 'live' | 'connecting' | 'paused';

/** The state of the live updates of shown data. */
export const liveness = store<Liveness>('connecting');

/** The interval of a poll for data without events; false while live updates are paused. */
export function usePolling(ms: number): number | false {
  return liveness.use() !== 'paused' && ms;
}

/**
 * Queries of people and sessions. The audit log records each read, so they run only on request, except for the newest rows
 * of an import that is being carried out.
 */
const ON_RECORD: ReadonlySet<unknown> = new Set([
  'audit',
  'browsers',
  'compliance',
  'import-rows',
  'insights',
  'notes',
  'people',
  'revisions',
  'session-of-notes',
  'sessions',
  'timeline',
  'transcript',
]);

export const isOnRecord = ({ queryKey: [name] }: Pick<Query, 'queryKey'>): boolean => ON_RECORD.has(name);

/** Failures that are worth a retry. */
const isPassing = (error: Error) => error instanceof NotebridgeError && (error.status === 0 || error.status >= 500);

/** Keeps results for a while, for the way back to a page; does not retry permanent failures. */
export const queries = new QueryClient({
  defaultOptions: {
    queries: {
      staleTime: 2_000,
      retry: (times, error) => times < 2 && isPassing(error),
      refetchOnWindowFocus: (query) => !isOnRecord(query) && liveness.get() !== 'paused',
      refetchOnReconnect: (query) => !isOnRecord(query),
    },
  },
});
