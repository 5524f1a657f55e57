import type { Columns } from '../../database/columns.js';

/**
 * The states of a request.
 *
 * - `Requested`: pending or in flight.
 * - `Unknown`: sent without an answer that shows whether the platform accepted it.
 * - `Settled`: the platform's id is known.
 * - `Rejected`: the platform certainly did not accept it.
 * - `Abandoned`: ended by an operator.
 */
export type RequestState = 'Requested' | 'Unknown' | 'Settled' | 'Rejected' | 'Abandoned';

/** A request's row; it has a body while it is open. */
export type RequestRow = Columns<'SessionRequest'> & { session: string; state: RequestState; body: Buffer };

/** A request or session that blocks another request for the same provider and appointment. */
export interface BlockingSession {
  /** Our id of the session. */
  session: string;
  state: string;
  /** True if a request is open. False if it is a session that a duplicate may follow. */
  isOpen: boolean;
}
