import type { JobEnd } from './job-state.js';

/**
 * Where a compliance job stands.
 *
 * - `Requested`: being submitted.
 * - `Unknown`: the submission may have reached the platform; a person has to say.
 * - `Rejected`: the platform has certainly not taken it.
 * - `Abandoned`: a person said that nothing more is to be done.
 * - `Submitted`: the platform has it and works on it.
 */
export const JOB_STATES = [
  'Requested',
  'Unknown',
  'Rejected',
  'Abandoned',
  'Submitted',
  'Completed',
  'Failed',
] as const;
export type JobState = (typeof JOB_STATES)[number];

/** A compliance job as it is kept; texts are sealed. */
export interface JobRow {
  id: string;
  jobId: string | null;
  state: JobState;
  request: Buffer | null;
  result: Buffer | null;
  fault: string | null;
  endedAt: Date | null;
  createdAt: Date;
  updatedAt: Date;
}

export function hasEnded(state: JobState): state is JobEnd {
  return state === 'Completed' || state === 'Failed';
}

/** Answers whether a person may say what became of a job: no answer came, or the platform knows no such job (now). */
export function isUnsettled({ state, result, fault }: Pick<JobRow, 'state' | 'result' | 'fault'>): boolean {
  return state === 'Unknown' || ((state === 'Submitted' || hasEnded(state)) && fault === 'gone' && result === null);
}

/** Answers whether nothing more changes by itself: a result is there, or somebody has to act. */
export function isSettled({ state, result, fault }: Pick<JobRow, 'state' | 'result' | 'fault'>): boolean {
  if (hasEnded(state)) return result !== null || fault === 'gone';
  return state === 'Rejected' || state === 'Abandoned' || isUnsettled({ state, result, fault });
}
