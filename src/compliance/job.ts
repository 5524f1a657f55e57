import { Injectable } from '@nestjs/common';
import type { Columns } from '../database/columns.js';
import type { SubmitComplianceJobRequest } from '../platform/contract/wire-types.js';
import { SealedColumn, Vault } from '../vault/vault.js';

/**
 * The states of a compliance job.
 *
 * - `Requested`: being submitted.
 * - `Unknown`: the submission may have reached the platform; an operator must resolve it.
 * - `Rejected`: the platform certainly did not accept it.
 * - `Abandoned`: ended by an operator.
 * - `Submitted`: in progress on the platform.
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

/** How the platform ended a job. */
export type JobEnd = 'Completed' | 'Failed';

/** A compliance job's row; its texts are encrypted. */
export type JobRow = Columns<'ComplianceJob'> & { state: JobState };

export function hasEnded(state: JobState): state is JobEnd {
  return state === 'Completed' || state === 'Failed';
}

/** True if an operator may resolve a job: its submission got no answer, or the platform does not know it. */
export function isUnsettled({ state, result, fault }: Pick<JobRow, 'state' | 'result' | 'fault'>): boolean {
  const isNotFound = fault === 'gone' || fault === 'maybe-gone';
  return state === 'Unknown' || ((state === 'Submitted' || hasEnded(state)) && isNotFound && result === null);
}

/** `isUnsettled` in SQL. */
export const UNSETTLED = `(state = 'Unknown'
  OR state IN ('Submitted', 'Completed', 'Failed') AND fault IN ('gone', 'maybe-gone') AND result IS NULL)`;

/** True if nothing changes automatically any longer: the job has its result, or an operator must act. */
export function isSettled(job: JobRow): boolean {
  if (hasEnded(job.state)) return job.result !== null || job.removed_at !== null || job.fault === 'gone';
  return job.state === 'Rejected' || job.state === 'Abandoned' || (isUnsettled(job) && job.fault !== 'maybe-gone');
}

/** The files of a job, at the platform's store, and the criteria to check them against. */
export type ComplianceRequest = Required<SubmitComplianceJobRequest>;

/** The body of a submission (spec, Compliance job submission), without the optional lists that are empty. */
export function submissionOf({ files, criteria, criteriaGroups }: ComplianceRequest): SubmitComplianceJobRequest {
  return {
    files: files.map(({ id, url }) => ({ id, url })),
    ...(criteria.length > 0 && { criteria }),
    ...(criteriaGroups.length > 0 && { criteriaGroups }),
  };
}

/** Encrypts the request and the result of a job. */
@Injectable()
export class ComplianceSeal {
  readonly request: SealedColumn<ComplianceRequest>;
  readonly result: SealedColumn<unknown>;

  constructor(vault: Vault) {
    this.request = new SealedColumn(vault, 'compliance_jobs', 'request');
    this.result = new SealedColumn(vault, 'compliance_jobs', 'result');
  }
}
