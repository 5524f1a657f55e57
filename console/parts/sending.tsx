import { api } from '../api/client.js';
import { usePolling } from '../api/queries.js';
import { useRead } from './read.js';

/** How often to check whether sending is held, in milliseconds. */
const POLL_INTERVAL_MS = 10_000;

/** Reads whether calls go to the platform, and who holds them. */
export const useSending = () =>
  useRead(['sending'], () => api.GET('/v1/sending'), { refetchInterval: usePolling(POLL_INTERVAL_MS) });
