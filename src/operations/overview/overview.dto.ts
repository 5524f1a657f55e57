import type { CodeOf } from '../../words/words.js';
import { CapabilityResponse } from './capabilities.dto.js';
import { CauseResponse } from './health.dto.js';

export class PartResponse {
  /** As /health/ready names it */
  name!: string;
  status!: 'ok' | 'degraded' | 'down';
  /** The state of the part in a sentence; if it is not `ok`, also what to do */
  sentence!: string;
  /** The part whose fault is the reason */
  causedBy!: string | null;
}

export class CallIntervalResponse {
  /** Its beginning; each lasts five minutes */
  at!: Date;
  calls!: number;
  /** Of these, calls that the platform refused: rejected, unauthorized, or over its limit */
  refused!: number;
  /** Of these, calls that could not be sent, or got no readable answer */
  failed!: number;
}

export class CallsResponse {
  /** Maximum user-management calls within one window */
  limit!: number;
  windowSeconds!: number;
  /** Calls within the last window */
  used!: number;
  /** No call is sent until then, because the platform asked for a pause */
  blockedUntil!: Date | null;
  /** The last six hours, oldest first, in intervals of five minutes */
  history!: CallIntervalResponse[];
}

/** A count is exact up to 1,000, and 1,001 for all that are more. */
export class InboxResponse {
  /** Deliveries that still need work */
  waiting!: number;
  waitingSince!: Date | null;
  dead!: number;
  notUnderstood!: number;
  /** When the last genuine delivery was stored; null before the first one */
  lastGenuineAt!: Date | null;
}

/** The time from an event to the commit of the notes that it announced, in the last hours. */
export class NoteLagResponse {
  hours!: number;
  /** Versions of notes after events; at most the newest 1,000 */
  notes!: number;
  /** Null if there were none */
  medianSeconds!: number | null;
  p95Seconds!: number | null;
  worstSeconds!: number | null;
  /** When the oldest event arrived whose session is not fetched yet; null if there is none */
  awaitedSince!: Date | null;
}

/** When the oldest work of each kind became due; null if none is due. */
export class OldestWorkResponse {
  people!: Date | null;
  sessions!: Date | null;
  requests!: Date | null;
  imports!: Date | null;
  compliance!: Date | null;
}

/** Work of one kind that continues only after a decision. */
export class DecisionResponse {
  /** @example client-needs-review */
  kind!: string;
  /** Exact up to 1,000; 1,001 for any larger number */
  count!: number;
  cause!: string;
  action!: string;
  /** The API path that lists them */
  list!: string;
  /** True if no decision is required: a dry run that can be applied */
  optional!: boolean;
}

/** The overview for operators. A figure is null if PostgreSQL does not answer in time. */
export class OverviewResponse {
  version!: string;
  status!: CodeOf<'healthState'>;
  /** As /health/ready gives them */
  causes!: CauseResponse[];
  parts!: PartResponse[];
  capabilities!: CapabilityResponse[];
  calls!: CallsResponse | null;
  inbox!: InboxResponse | null;
  noteLag!: NoteLagResponse | null;
  oldestWork!: OldestWorkResponse | null;
  /** One entry for each kind that has rows */
  decisions!: DecisionResponse[] | null;
  /** The head of the change feed: GET /v1/events?after= continues from here */
  feedCursor!: string | null;
}
