import { type Query, QueryClient } from '@tanstack/react-query';
import { NotebridgeError } from '../../client/notebridge-error.js';
import { store } from './store.js';

type Liveness = 'live' | 'connecting' | 'paused';

/** Whether what is shown follows the service. */
export const liveness = store<Liveness>('connecting');

/** Milliseconds between two looks at what no event tells of; false while the reader has stopped what changes. */
export function usePolling(ms: number): number | false {
  return liveness.use() !== 'paused' && ms;
}

/**
 * What shows a person or a session. Each reading of it stands in the audit log, so it is made when somebody asks for
 * it, and never by itself.
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

/** Failures that pass by themselves. */
const isPassing = (error: Error) => error instanceof NotebridgeError && (error.status === 0 || error.status >= 500);

/** What was read stays for a while when one goes to and fro; what failed for good is not asked again. */
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
