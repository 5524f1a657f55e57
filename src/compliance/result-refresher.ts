import { isDeepStrictEqual } from 'node:util';
import { Processor } from '@nestjs/bullmq';
import { Injectable } from '@nestjs/common';
import { Env } from '../config/env.js';
import { type ComplianceJob, PlatformClient } from '../platform/clients/platform-client.js';
import { Contract } from '../platform/contract/contract.js';
import { type Fetched, FetchLoop, type Outcome } from '../platform/fetch/fetch-loop.js';
import { DueParts, DueProcessor } from '../queue/due-rows/due-loop.js';
import { Poller } from '../queue/notifier/poller.js';
import { ComplianceSeal, hasEnded, type JobRow } from './job.js';
import { JobFeedEvents } from './job-events.handler.js';
import { JobsRepository } from './jobs.repository.js';

/** A due job; only jobs with the platform's id become due. */
type DueJob = JobRow & { job_id: string };

/** Maximum lookups in flight per process. */
const MAX_LOOKUPS = 2;

const ENDS = { completed: 'Completed', failed: 'Failed' } as const;

/** Looks up compliance jobs: results announced by an event, and jobs without an event. */
@Injectable()
export class ResultRefresher extends FetchLoop<DueJob, ComplianceJob> {
  constructor(
    compliance: PlatformClient,
    contract: Contract,
    feedEvents: JobFeedEvents,
    seal: ComplianceSeal,
    env: Env,
    parts: DueParts,
  ) {
    super(
      {
        name: 'compliance jobs',
        queue: 'compliance',
        table: { name: 'compliance_jobs', key: 'id', lanes: [{ lane: 0 }], effectMs: 0 },
        counter: { name: 'compliance_fetches_total', help: 'Lookups of compliance jobs by outcome' },
        concurrency: MAX_LOOKUPS,
        traced: ({ id }) => ({ 'notebridge.compliance_job': id }),
        isConfigured: () => contract.canCall('getComplianceJob'),
        fetch: (row, signal) => compliance.getComplianceJob(row.job_id, { signal }),
        storeAnswer: async (_tx, { row }, answer) => ({
          ...outcomeOf(row, answer, seal, env.COMPLIANCE_REFRESH_EVERY_SECONDS * 1_000),
          afterCommit: () => feedEvents.publish(),
        }),
        storeNotFound: (_fetched, waitMs) => ({
          set: `fault = 'gone', failures = failures + 1,
            updated_at = CASE WHEN fault = 'gone' THEN updated_at ELSE clock_timestamp() END,
            due_at = clock_timestamp() + $1 * interval '1 millisecond'`,
          values: [waitMs],
        }),
      },
      parts,
    );
  }
}

/**
 * The outcome of a lookup. A final answer is stored and, unless an event already announced it, published. A running job is
 * looked up again. If the contract does not define final answers, the answer after the final event is the result; until
 * then each new answer is shown and published, because the event may have been lost.
 */
function outcomeOf(
  row: Fetched<DueJob>['row'],
  { state: found, raw }: ComplianceJob,
  seal: ComplianceSeal,
  minIntervalMs: number,
): Outcome {
  const end = found === 'completed' || found === 'failed' ? ENDS[found] : row.state;
  if (found !== 'running' && hasEnded(end)) {
    return {
      set: `state = $1, result = $2, fetched_at = clock_timestamp(), ended_at = coalesce(ended_at, clock_timestamp()),
        pending_events_at = CASE WHEN state = $1 THEN pending_events_at ELSE clock_timestamp() END,
        fault = NULL, failures = 0, refused_at = NULL, due_at = NULL, updated_at = clock_timestamp()`,
      values: [end, seal.result.seal(row.id, raw)],
    };
  }
  const isNew = found === 'unknown' && !isDeepStrictEqual(row.result && seal.result.open(row.id, row.result), raw);
  const since = row.ended_at ?? row.submitted_at ?? row.created_at;
  return {
    set: `fetched_at = $1, fault = NULL, failures = 0, refused_at = NULL, due_at = $2, result = coalesce($3, result),
      pending_events_at = CASE WHEN $3::bytea IS NULL THEN pending_events_at ELSE $1 END,
      updated_at = CASE WHEN $3::bytea IS NULL THEN updated_at ELSE $1 END`,
    values: [row.now, nextPoll(since, row.now, minIntervalMs), isNew ? seal.result.seal(row.id, raw) : null],
  };
}

const MAX_INTERVAL_MS = 6 * 3_600_000;

/**
 * When a job is looked up next: after half of the time waited so far, within the minimum and maximum interval.
 *
 * @param since start of the wait
 * @param minIntervalMs COMPLIANCE_REFRESH_EVERY_SECONDS in milliseconds
 */
export function nextPoll(since: Date, now: Date, minIntervalMs: number): Date {
  const waitedMs = Math.max(0, now.getTime() - since.getTime());
  return new Date(now.getTime() + Math.max(minIntervalMs, Math.min(MAX_INTERVAL_MS, waitedMs / 2)));
}

@Processor('compliance')
export class ComplianceProcessor extends DueProcessor {
  constructor(refresher: ResultRefresher, jobs: JobsRepository, feedEvents: JobFeedEvents, poller: Poller) {
    const lost = { name: 'lost compliance submissions', nextDue: jobs.lostSince, work: () => jobs.settleLost() };
    super(poller, [refresher], [lost, feedEvents.poll]);
  }
}
