import { ApiProperty } from '@nestjs/swagger';
import type { ShownState } from '../model/session-row.js';
import type { RequestAction } from './create-session.dto.js';
import type { RequestState } from './request-row.js';

/** A session of the platform that may be the one that was asked for. */
export class RequestCandidateResponse {
  /** The platform's id */
  sessionId!: string;
  /** Our id of it */
  @ApiProperty({ format: 'uuid' })
  session!: string;
  state!: ShownState;
  /** When this service first heard of it */
  knownSince!: Date;
  /** Whether it may be this request's, or why not */
  verdict!: 'fits' | 'other-provider' | 'known-before' | 'held';
  /** The same in a sentence */
  why!: string;
}

export class RequestChoiceResponse {
  action!: RequestAction;
  does!: string;
}

/** The EHR's request for a session: where it stands, and what may be known of an outcome that got no answer. */
export class RequestEvidenceResponse {
  state!: RequestState;
  inputKind!: string;
  requestedAt!: Date;
  /** When the last attempt may have left; null: none has, or it certainly did nothing */
  attemptedAt!: Date | null;
  settledAt!: Date | null;
  /** Attempts in a row that certainly did nothing */
  failures!: number;
  /** Why the last of these did nothing */
  fault!: string | null;
  /** An earlier attempt may have made a session, too */
  earlierUnknown!: boolean;
  /** What was sent as partnerAppointmentId: events that name it with the provider are evidence */
  lookedFor!: string;
  /** Why an unknown outcome is not settled by itself; null for any other state */
  why!: string | null;
  /** Sessions with this appointment that events told of; at most twenty */
  found!: RequestCandidateResponse[];
  /** How it may be resolved */
  choices!: RequestChoiceResponse[];
}
