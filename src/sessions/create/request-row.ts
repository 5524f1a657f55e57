import type { Columns } from '../../database/columns.js';

/**
 * Where a request stands.
 *
 * - `Requested`: to be sent, or on its way.
 * - `Unknown`: sent, and no answer says whether the platform took it.
 * - `Settled`: the platform's id is known.
 * - `Rejected`: the platform has certainly not taken it.
 * - `Abandoned`: a person said that nothing more is to be done.
 */
export type RequestState = 'Requested' | 'Unknown' | 'Settled' | 'Rejected' | 'Abandoned';

/** A request that still stands in the way of another for the same appointment and provider. */
export interface OpenRequest {
  session: string;
  state: RequestState;
}

/** A request's row; its body is there while it is open. */
export type RequestRow = Columns<'SessionRequest'> & OpenRequest & { body: Buffer };

/** What an event says of a session that may have been requested here. */
export interface RecordedSession {
  /** Our id of the row that the event was stored in. */
  id: string;
  sessionId: string;
  providerUserId: string;
  partnerAppointmentId: string;
  receivedAt: Date;
}
