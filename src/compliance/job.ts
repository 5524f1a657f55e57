import { Injectable } from '@nestjs/common';
import { allColumns, type Fields } from '../database/columns.js';
import type { SubmitComplianceJobRequest } from '../platform/contract/wire-types.js';
import type { RequestTable } from '../platform/send/request-rows.js';
import { SealedColumn, Vault } from '../vault/vault.js';
import { type CodeOf, codesOf, WORDS } from '../words/words.js';

export const JOB_STATES = codesOf(WORDS.complianceState);
export type JobState = CodeOf<'complianceState'>;

/** The end that the platform reported of a job. */
export type JobEnd = 'Completed' | 'Failed';

/** Why a job awaits a decision. */
export const REVIEWS = codesOf(WORDS.complianceReview);
export type Review = CodeOf<'complianceReview'>;

/** A compliance job's row; its texts are encrypted. */
export type JobRow = Fields<'ComplianceJob'> & { state: JobState; review: Review | null };

/** The lanes of `compliance_jobs`. */
export const LANES = { lookups: 0, submissions: 1 } as const;

/** The table of jobs, which holds their submissions. */
export const JOB_TABLE = {
  name: 'compliance_jobs',
  columns: allColumns('ComplianceJob', 't'),
  lane: LANES.submissions,
  platformId: 'job_id',
} as const satisfies RequestTable;

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

/** Encrypts the texts of a job. */
@Injectable()
export class ComplianceSeal {
  readonly request: SealedColumn<ComplianceRequest>;
  /** Why the platform rejected the submission. */
  readonly message: SealedColumn<string>;
  readonly result: SealedColumn<unknown>;

  constructor(vault: Vault) {
    this.request = new SealedColumn(vault, 'compliance_jobs', 'request');
    this.message = new SealedColumn(vault, 'compliance_jobs', 'message');
    this.result = new SealedColumn(vault, 'compliance_jobs', 'result');
  }
}
