import type { ComplianceJob } from '../platform/clients/platform-client.js';
import type { ResolveAction } from '../platform/send/request-resolver.js';
import type { JobEnd, JobRow, JobState, Review } from './job.js';

/** The facts of a job that decide the effect of an event or an answer. */
export interface JobFacts {
  state: JobState;
  /** True once the final answer of a lookup was stored. Nothing changes it, although retention may remove it. */
  isRead: boolean;
  /** True once its end was published. */
  isAnnounced: boolean;
  review: Review | null;
}

/** A feed event of a job. */
export interface JobFeedEvent {
  type: 'compliance.completed' | 'compliance.failed' | 'compliance.needs-review';
  /** The state that it reports. */
  state: JobState;
  /** True if the result can be read. */
  hasResult: boolean;
  code?: string;
}

/** A job after a change, and the feed event that the change causes. */
interface Change {
  job: JobFacts;
  publish: JobFeedEvent | null;
}

export function factsOf(row: JobRow): JobFacts {
  const { state, review } = row;
  return {
    state,
    review,
    isRead: row.result !== null || row.removedAt !== null,
    isAnnounced: row.announcedAt !== null,
  };
}

/**
 * Applies an event. While the result is not read, Completed overrides Failed, so that the order of events does not matter.
 *
 * @param canReadEnds false if lookups cannot show the end of a job, so that the event itself is published
 * @returns undefined if the event changes nothing
 */
export function afterEvent(job: JobFacts, end: JobEnd, canReadEnds: boolean): Change | undefined {
  if (job.isRead || job.isAnnounced || job.state === 'Abandoned') return undefined;
  const ended = { ...job, state: job.state === 'Completed' ? job.state : end };
  return canReadEnds ? { job: ended, publish: null } : announce(ended, ended.state);
}

/**
 * Applies the answer of a lookup. It decides how the job ended, even if events said otherwise. Without the contract's `states` any
 * answer after the event is the result.
 *
 * @returns undefined if the job has not ended
 */
export function afterLookup(job: JobFacts, found: ComplianceJob['state']): Change | undefined {
  const end = endOf(job.state, found);
  if (end === undefined) return undefined;
  if (job.isAnnounced) return { job: { ...job, isRead: true, review: null }, publish: null };
  return announce({ ...job, isRead: true, review: null }, end);
}

/** Asks for a review of a job whose result could not be read in time. */
export function afterLongWait(job: JobFacts): Change | undefined {
  if (!hasEnded(job.state) || job.isRead || job.review !== null) return undefined;
  const review = 'result-unreadable';
  const publish: JobFeedEvent = { type: 'compliance.needs-review', state: job.state, hasResult: false, code: review };
  return { job: { ...job, review }, publish };
}

function announce(job: JobFacts, state: JobEnd): Change {
  const type = state === 'Completed' ? 'compliance.completed' : 'compliance.failed';
  return { job: { ...job, state, isAnnounced: true }, publish: { type, state, hasResult: job.isRead } };
}

function endOf(state: JobState, found: ComplianceJob['state']): JobEnd | undefined {
  if (found === 'unknown') return hasEnded(state) ? state : undefined;
  if (found === 'running') return undefined;
  return found === 'completed' ? 'Completed' : 'Failed';
}

function hasEnded(state: JobState): state is JobEnd {
  return state === 'Completed' || state === 'Failed';
}

/** True if an operator may resolve a job: its submission got no answer, or the platform does not know it. */
function isUnsettled({ state, result, fault }: Pick<JobRow, 'state' | 'result' | 'fault'>): boolean {
  const isNotFound = fault === 'gone' || fault === 'maybe-gone';
  return state === 'Unknown' || ((state === 'Submitted' || hasEnded(state)) && isNotFound && result === null);
}

/** `isUnsettled` in SQL. */
export const UNSETTLED = `(state = 'Unknown'
  OR state IN ('Submitted', 'Completed', 'Failed') AND fault IN ('gone', 'maybe-gone') AND result IS NULL)`;

/** Lists the actions with which an operator may resolve a job now. */
export function resolveActions(
  job: Pick<JobRow, 'state' | 'result' | 'fault' | 'request' | 'leaseOwner'>,
): ResolveAction[] {
  if (job.state === 'Requested') return job.leaseOwner === null ? ['abandon'] : [];
  if (!isUnsettled(job)) return [];
  // While only the URL of the lookup may be wrong, the platform may have the job.
  const isResendable = job.request !== null && job.fault !== 'maybe-gone';
  return ['link', ...(isResendable ? (['create'] as const) : []), 'abandon'];
}

/** True if the end of a job was published whose result will not come, because the contract has no lookup. */
export function lacksLookup(job: JobRow, canLookUp: boolean): boolean {
  const { isAnnounced, isRead } = factsOf(job);
  return !canLookUp && hasEnded(job.state) && isAnnounced && !isRead;
}

/** True if nothing changes automatically: the job has its result, or an operator must act. */
export function isSettled(job: JobRow, canLookUp: boolean): boolean {
  if (lacksLookup(job, canLookUp)) return true;
  if (hasEnded(job.state)) return factsOf(job).isRead || job.review !== null || job.fault === 'gone';
  return job.state === 'Rejected' || job.state === 'Abandoned' || (isUnsettled(job) && job.fault !== 'maybe-gone');
}
