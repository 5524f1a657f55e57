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

/** A request that blocks another one for the same appointment and provider. */
export interface OpenRequest {
  session: string;
  state: RequestState;
}

/** A request's row; it has a body while it is open. */
export type RequestRow = Columns<'SessionRequest'> & OpenRequest & { body: Buffer };

/** The data of an event about a session that may have been requested here. */
export interface RecordedSession {
  /** Id of the row that the event was stored in. */
  id: string;
  sessionId: string;
  providerUserId: string;
  partnerAppointmentId: string;
  receivedAt: Date;
}
