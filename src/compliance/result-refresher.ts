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

/** Only a job that the platform has is due. */
type DueJob = JobRow & { job_id: string };

/** Look-ups that one process has under way at most. */
const LOOK_UPS_AT_ONCE = 2;

const ENDS = { completed: 'Completed', failed: 'Failed' } as const;

/** Looks up compliance jobs: results that an event promised, and jobs of which no event came. */
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
        counter: { name: 'compliance_fetches_total', help: 'Look-ups of compliance jobs by what they came to' },
        places: LOOK_UPS_AT_ONCE,
        traced: ({ id }) => ({ 'notebridge.compliance_job': id }),
        isConfigured: () => contract.canCall('getComplianceJob'),
        fetch: (row, signal) => compliance.getComplianceJob(row.job_id, { signal }),
        storeAnswer: async (_tx, { row }, answer) => ({
          ...answered(row, answer, seal, env.COMPLIANCE_REFRESH_EVERY_SECONDS * 1_000),
          afterCommit: () => feedEvents.publish(),
        }),
        storeNotFound: (_fetched, waitMs) => ({
          set: `fault = 'gone', failures = failures + 1, refused_at = NULL,
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
 * What the platform's answer leaves. An end is stored with the whole answer and published unless an event said the
 * same; one that is still running is looked up again. Where the contract does not say what an answer means, the answer
 * after the end's event is the result; until then each other answer is shown and published, for the event may have been lost.
 */
function answered(
  row: Fetched<DueJob>['row'],
  { state: found, raw }: ComplianceJob,
  seal: ComplianceSeal,
  shortestMs: number,
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
    values: [row.now, nextPoll(since, row.now, shortestMs), isNew ? seal.result.seal(row.id, raw) : null],
  };
}

/** However long a job takes, it is looked up this often, in milliseconds. */
const LONGEST_PAUSE_MS = 6 * 3_600_000;

/**
 * When a job is looked up next: soon at first, then less and less often, each pause half as long as what was waited
 * until then.
 *
 * @param since when the waiting began
 * @param shortestMs the shortest pause, in milliseconds (COMPLIANCE_REFRESH_EVERY_SECONDS)
 */
export function nextPoll(since: Date, now: Date, shortestMs: number): Date {
  const waitedMs = Math.max(0, now.getTime() - since.getTime());
  return new Date(now.getTime() + Math.max(shortestMs, Math.min(LONGEST_PAUSE_MS, waitedMs / 2)));
}

@Processor('compliance')
export class ComplianceProcessor extends DueProcessor {
  constructor(refresher: ResultRefresher, jobs: JobsRepository, feedEvents: JobFeedEvents, poller: Poller) {
    const also = async () => {
      await jobs.settleLost();
      await feedEvents.publish();
    };
    super(poller, { name: 'compliance', everyMs: 2_000, also }, [refresher]);
  }
}
