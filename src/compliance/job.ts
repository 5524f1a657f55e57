import { Injectable } from '@nestjs/common';
import type { Columns } from '../database/columns.js';
import type { SubmitComplianceJobRequest } from '../platform/contract/wire-types.js';
import { SealedColumn, Vault } from '../vault/vault.js';

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

/** How a job of the platform ended. */
export type JobEnd = 'Completed' | 'Failed';

/** A compliance job as it is kept; texts are sealed. */
export type JobRow = Columns<'ComplianceJob'> & { state: JobState };

export function hasEnded(state: JobState): state is JobEnd {
  return state === 'Completed' || state === 'Failed';
}

/** Answers whether a person may say what became of a job: no answer came, or the platform knows no such job (now). */
export function isUnsettled({ state, result, fault }: Pick<JobRow, 'state' | 'result' | 'fault'>): boolean {
  return state === 'Unknown' || ((state === 'Submitted' || hasEnded(state)) && fault === 'gone' && result === null);
}

/** As `isUnsettled` says. */
export const UNSETTLED = `(state = 'Unknown'
  OR state IN ('Submitted', 'Completed', 'Failed') AND fault = 'gone' AND result IS NULL)`;

/** Answers whether nothing more changes by itself: a result is there, or a person has to act. */
export function isSettled(job: JobRow): boolean {
  if (hasEnded(job.state)) return job.result !== null || job.removed_at !== null || job.fault === 'gone';
  return job.state === 'Rejected' || job.state === 'Abandoned' || isUnsettled(job);
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

/** Seals what a job was asked for and what came of it. */
@Injectable()
export class ComplianceSeal {
  readonly request: SealedColumn<ComplianceRequest>;
  readonly result: SealedColumn<unknown>;

  constructor(vault: Vault) {
    this.request = new SealedColumn(vault, 'compliance_jobs', 'request');
    this.result = new SealedColumn(vault, 'compliance_jobs', 'result');
  }
}
