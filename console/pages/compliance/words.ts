import type { Schemas } from '../../api/client.js';
import type { Tone } from '../../parts/state.js';

export type Job = Schemas['ComplianceJobResponse'];

/** The states of compliance jobs. */
export const JOB: Readonly<Record<Job['state'], Tone>> = {
  Requested: 'busy',
  Submitted: 'busy',
  Completed: 'good',
  Failed: 'bad',
  Rejected: 'bad',
  Abandoned: 'quiet',
  Unknown: 'warn',
};

/** The decisions that a job can await. */
export const REVIEW = { 'submission-unknown': 'Submission unknown', 'result-unreadable': 'Result unreadable' } as const;
