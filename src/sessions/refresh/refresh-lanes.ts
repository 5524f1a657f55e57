/** Sessions that events, their readers or their age make due. */
export const EVENT_LANE = 0;

/** Sessions that are fetched again because all since a moment were asked for. */
export const BULK_LANE = 1;

/** Sessions that one process fetches side by side. */
export const FETCHES_AT_ONCE = 4;
