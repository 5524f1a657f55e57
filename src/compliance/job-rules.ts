import type { ComplianceJob } from '../platform/clients/platform-client.js';
import type { JobRow } from './job-row.js';

const HOUR_MS = 3_600_000;

/** How long a result may stay unreadable after its event, how long a job without an event is looked up, and how rarely. */
const UNREAD_MS = HOUR_MS;
const UNENDED_MS = 30 * 24 * HOUR_MS;
const LONGEST_MS = 6 * HOUR_MS;

/** What the contract file lets lookups show: the result of an ended job, and also whether a job has ended. */
export interface Readable {
  results: boolean;
  ends: boolean;
}

/** A feed event of a job. */
export interface JobFeedEvent {
  type: `compliance.${'completed' | 'failed' | 'needs-review' | 'merged'}`;
  state: string;
  hasResult?: boolean;
  code?: string;
  /** Of `compliance.merged`: the id that leads to the job from now on, and that of the job. */
  id?: string;
  into?: string;
}

/** A change of a row, and the feed event that it causes. */
export interface Change {
  changes: Partial<JobRow>;
  publish?: JobFeedEvent | undefined;
}

/** The fields of a row without a failed lookup, and of one that needs no call and no end. */
export const NO_FAULT = { fault: null, failures: 0, refusedAt: null, refusedStatus: null, notFoundAt: null };
export const ENDED = { dueAt: null, giveUpAt: null };

export const after = (now: Date, ms: number): Date => new Date(now.getTime() + ms);

/** Outdates the answer of a lookup in flight: it may be older than a change of the job, or about another job. */
export const outdated = ({ callNo }: JobRow) => ({ callNo: callNo + 1 });

const isEnd = (state: string): state is 'Completed' | 'Failed' => state === 'Completed' || state === 'Failed';

/** True once its result was stored. Nothing changes it, although retention may remove it. */
const isRead = ({ result, removedAt }: JobRow): boolean => result !== null || removedAt !== null;

const endOf = (state: string, hasResult: boolean): JobFeedEvent => ({
  type: state === 'Completed' ? 'compliance.completed' : 'compliance.failed',
  ...{ state, hasResult },
});

/** When a job is looked up that has ended. */
const untilRead = ({ results }: Readable, now: Date) =>
  results ? { dueAt: now, giveUpAt: after(now, UNREAD_MS) } : ENDED;

/**
 * The fields of a job whose id on the platform becomes known. What is known of it stays; if its result is not read, lookups
 * begin anew. Pure.
 *
 * @param known the row that has the id already, of which an abandoned one says nothing
 * @param refreshMs until the first lookup of a job that has not ended
 */
export function linked(job: JobRow, known: JobRow | undefined, can: Readable, now: Date, refreshMs: number) {
  const shown =
    known && known.state !== 'Abandoned' ? known : { state: 'Submitted', lastEventAt: null, publishedAt: null };
  const { state, lastEventAt, publishedAt } = shown;
  const first = { dueAt: can.ends ? after(now, refreshMs) : null, giveUpAt: after(now, UNENDED_MS) };
  const lookups = known?.result ? ENDED : isEnd(state) ? untilRead(can, now) : first;
  return { ...outdated(job), state, lastEventAt, publishedAt, review: null, updatedAt: now, ...NO_FAULT, ...lookups };
}

/**
 * Applies an event that a job has ended. While the result is not read, Completed overrides Failed, so that the order of events
 * does not matter. If lookups show no ends, it is published at once. Pure.
 *
 * @returns undefined if it changes nothing
 */
export function afterEvent(job: JobRow, end: 'Completed' | 'Failed', can: Readable, now: Date): Change | undefined {
  const isPublished = job.publishedAt !== null;
  if (isRead(job) || job.state === 'Abandoned' || (isPublished && !can.results)) return undefined;
  const state = isPublished || job.state === 'Completed' ? job.state : end;
  const isNews = !isPublished && !can.ends;
  const changes = { ...outdated(job), state, lastEventAt: now, updatedAt: now, ...untilRead(can, now) };
  return isNews ? { changes: { ...changes, publishedAt: now }, publish: endOf(state, false) } : { changes };
}

/**
 * Applies the answer of a lookup. It decides how the job ended, unless that was published. Without the contract's `states` any
 * answer after the event is the result. Pure.
 *
 * @returns undefined if the job has not ended
 */
export function afterLookup(job: JobRow, found: ComplianceJob['state'], now: Date): Change | undefined {
  const state = { unknown: job.state, running: '', completed: 'Completed', failed: 'Failed' }[found];
  if (!isEnd(state)) return undefined;
  const changes = { review: null, updatedAt: now, ...ENDED, ...NO_FAULT };
  if (job.publishedAt !== null) return { changes };
  return { changes: { ...changes, state, publishedAt: now }, publish: endOf(state, true) };
}

/** When a job is looked up again: after half of the time waited so far. Pure. @param leastMs the shortest wait */
export function nextLookup({ lastEventAt, attemptedAt, createdAt }: JobRow, now: Date, leastMs: number): Date {
  const waitedMs = now.getTime() - (lastEventAt ?? attemptedAt ?? createdAt).getTime();
  return after(now, Math.max(leastMs, Math.min(waitedMs / 2, LONGEST_MS)));
}

/** Ends what takes too long: an upload, a submission whose process has ended, the lookups of a result. Pure. */
export function givenUp({ state, review }: JobRow, now: Date): Change {
  const changes = { ...ENDED, updatedAt: now };
  if (state === 'Uploading') {
    const publish = { type: 'compliance.failed', state: 'Rejected', code: 'not-submitted' } as const;
    return { changes: { ...changes, state: 'Rejected' }, publish };
  }
  const isLost = state === 'Submitting';
  const code = isLost ? 'submission-unknown' : 'result-unreadable';
  const then = isLost ? 'Unknown' : state;
  const publish = { type: 'compliance.needs-review', state: then, code } as const;
  return { changes: { ...changes, state: then, review: code }, publish: review === code ? undefined : publish };
}

/** True if an operator may link or abandon a job: no answer named it, or its lookups fail. Pure. */
export function isResolvable(job: JobRow): boolean {
  const isUnread = (job.state === 'Submitted' || isEnd(job.state)) && !isRead(job);
  return job.state === 'Unknown' || (isUnread && (job.fault !== null || job.review !== null));
}

/** The code of what is wrong with a job; null if nothing is. Pure. */
export function errorCode(job: JobRow, { results }: Readable): string | null {
  if (job.state === 'Abandoned') return 'abandoned';
  if (job.state === 'Rejected') return job.attemptedAt === null ? 'not-submitted' : 'platform-rejected';
  if (!results && isEnd(job.state) && !isRead(job)) return 'no-result';
  return job.review ?? job.fault;
}
