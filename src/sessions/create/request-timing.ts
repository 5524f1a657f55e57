import type { BackoffBounds } from '../../queue/backend/backoff.js';

/** Seconds that a create waits for the platform's id when the caller says nothing (`Prefer: wait`). */
export const CREATE_WAIT_SECONDS = 10;

/** Bounds of the wait after an attempt that did nothing, in milliseconds. */
export const REQUEST_BACKOFF: BackoffBounds = { baseMs: 1_000, maxMs: 5 * 60_000 };

/** Milliseconds between the mark of an attempt and its sending; later it is not sent, for it may count as lost soon. */
export const SEND_WITHIN_MS = 2_000;
