import type { CodeOf } from '../../words/words.js';
import { CapabilityResponse } from './capabilities.dto.js';
import { CauseResponse } from './health.dto.js';

export class PartResponse {
  /** As /health/ready names it */
  name!: string;
  status!: 'ok' | 'degraded' | 'down';
  /** What works, or what is wrong and what to do */
  sentence!: string;
  /** The part whose fault is the reason */
  causedBy!: string | null;
}

export class CallIntervalResponse {
  /** Its beginning; each lasts five minutes */
  at!: Date;
  calls!: number;
  /** Of these, those that the platform refused: rejected, not authorized, or beyond its limit */
  refused!: number;
  /** Of these, those that could not be sent, or got no readable answer */
  failed!: number;
}

export class CallsResponse {
  /** Calls to user management that may leave within one window */
  limit!: number;
  windowSeconds!: number;
  /** Calls that occupy the window now */
  used!: number;
  /** Until then no call leaves, for the platform asked for patience */
  blockedUntil!: Date | null;
  /** The last six hours, the oldest first, in intervals of five minutes */
  history!: CallIntervalResponse[];
}

/** A count is exact up to 1,000, and 1,001 for all that are more. */
export class InboxResponse {
  /** Deliveries that are not done with */
  waiting!: number;
  waitingSince!: Date | null;
  dead!: number;
  notUnderstood!: number;
  /** Requests within the last hour that were not genuine */
  rejected!: number;
}

/** How long notes took that webhooks told of: from the event to their being stored, in the last hours. */
export class NoteLagResponse {
  hours!: number;
  /** Versions of notes that events led to; of the newest 1,000 that were stored, if there were more */
  notes!: number;
  /** Null: there were none */
  medianSeconds!: number | null;
  p95Seconds!: number | null;
  worstSeconds!: number | null;
  /** When the event came that has waited longest for its session to be fetched; null: none waits */
  awaitedSince!: Date | null;
}

/** Since when the oldest of each has been due; null: nothing is. */
export class OldestWorkResponse {
  people!: Date | null;
  sessions!: Date | null;
  requests!: Date | null;
  imports!: Date | null;
  compliance!: Date | null;
}

/** What continues only after a decision, of one kind. */
export class DecisionResponse {
  /** @example client-needs-review */
  kind!: string;
  /** Exact up to 1,000; 1,001 for any larger number */
  count!: number;
  cause!: string;
  action!: string;
  /** Where the API lists them */
  list!: string;
  /** It may stay undecided: a dry run that could be applied */
  optional!: boolean;
}

/** What an operator has to see at a glance. A figure is null if PostgreSQL does not answer in time. */
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
  /** The head of the change feed: GET /v1/events?after= goes on from here */
  feedCursor!: string | null;
}
