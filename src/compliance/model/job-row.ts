import type { ProcessingEventType, SubmitComplianceJobRequest } from '../../platform/contract/wire-types.js';

/** How a job of the platform ended, as its events report. */
export type JobEnd = 'Completed' | 'Failed';

/** The events that end a job (spec, Processing API events). */
export const COMPLIANCE_EVENT_TYPES = ['COMPLIANCE_JOB_COMPLETED', 'COMPLIANCE_JOB_FAILED'] as const;
export const SMART_EDIT_EVENT_TYPES = ['SMART_EDIT_JOB_COMPLETED', 'SMART_EDIT_JOB_FAILED'] as const;

export function jobEndOf(eventType: ProcessingEventType): JobEnd {
  return eventType.endsWith('_COMPLETED') ? 'Completed' : 'Failed';
}

/** The id that a job's event names, under `payload` as the spec shows it. @throws {Error} when it names none */
export function jobIdOf(body: Record<string, unknown>): string {
  const { payload } = body;
  const jobId = typeof payload === 'object' && payload !== null && 'jobId' in payload ? payload.jobId : undefined;
  if (typeof jobId !== 'string' || jobId === '') throw new Error('A job event names no payload.jobId.');
  return jobId;
}

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

/** Answers whether nothing more changes by itself: a result is there, or a person has to act. */
export function isSettled({ state, result, fault }: Pick<JobRow, 'state' | 'result' | 'fault'>): boolean {
  if (hasEnded(state)) return result !== null || fault === 'gone';
  return state === 'Rejected' || state === 'Abandoned' || isUnsettled({ state, result, fault });
}

/** What a compliance check is asked for: files that are at the platform's store, and by what they are judged. */
export type ComplianceRequest = Required<SubmitComplianceJobRequest>;

/** The body of a submission (spec, Compliance job submission); empty lists are left out, for they are optional. */
export function submissionOf({ files, criteria, criteriaGroups }: ComplianceRequest): SubmitComplianceJobRequest {
  return {
    files: files.map(({ id, url }) => ({ id, url })),
    ...(criteria.length > 0 && { criteria }),
    ...(criteriaGroups.length > 0 && { criteriaGroups }),
  };
}
