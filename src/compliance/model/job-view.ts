import { ApiProperty, OmitType } from '@nestjs/swagger';
import { PageResponse } from '../../http/request/page.js';
import type { ComplianceSeal } from './compliance-seal.js';
import type { ComplianceRequest, JobEnd, JobRow, JobState } from './job-row.js';

export class JobErrorResponse {
  /** @example submission-unknown */
  code!: string;
  message!: string;
}

/** A compliance job as the EHR sees it. */
export class ComplianceJobResponse {
  @ApiProperty({ format: 'uuid' })
  id!: string;
  /** The platform's id */
  jobId!: string | null;
  state!: JobState;

  /**
   * As the platform gave it. Of a job that is Submitted it is the answer so far, where the contract does not say which
   * answers mean an end
   */
  @ApiProperty({ nullable: true, type: 'object', additionalProperties: true })
  result!: unknown;
  error!: JobErrorResponse | null;
  /** Ids of the files, in their order */
  files!: string[];
  createdAt!: Date;
  updatedAt!: Date;
}

/** A job in a list: its result is read by its id. */
export class ListedJobResponse extends OmitType(ComplianceJobResponse, ['result'] as const) {}

export class ComplianceJobPageResponse extends PageResponse {
  items!: ListedJobResponse[];
}

/** A smart edit job, of which the platform reports only how it ended. */
export class SmartEditJobResponse {
  /** The platform's */
  jobId!: string;
  state!: JobEnd;
  updatedAt!: Date;
}

const MESSAGES: Record<string, string> = {
  'submission-unknown':
    'The platform did not answer the submission; look there, then resolve with "link", "create" or "abandon".',
  abandoned: 'A person decided that nothing more is done; submit the files again if they are to be checked.',
  gone: 'The platform does not know this job now, and is asked again by itself; if it never will, resolve it with "link" to another, "create" or "abandon".',
  rejected: 'The platform refused this job; correct it and submit it again.',
  'not-found': 'The platform did not know what the submission names; correct it and submit it again.',
  'not-configured': 'The submission is not set up; GET /v1/capabilities says what is missing.',
  unauthorized: 'The platform refuses our key; an operator must look at it before the job is submitted again.',
  unreachable: 'The platform could not be reached; submit the job again.',
  'rate-limited': 'The platform asks for patience; submit the job again later.',
};

const NOT_ASKED = 'The platform could not be asked for the result; it is tried again by itself.';

/** Shows a job. @param seal opens what the row holds */
export function showJob(row: JobRow, seal: ComplianceSeal): ComplianceJobResponse {
  return { ...showListedJob(row, seal), result: row.result && seal.result.open(row.id, row.result) };
}

/** Shows a submission as it was committed, where its row can't be read. */
export function showRequested(
  id: string,
  { files }: Pick<ComplianceRequest, 'files'>,
  now: Date,
): ComplianceJobResponse {
  const ids = files.map((file) => file.id);
  return { id, jobId: null, state: 'Requested', result: null, error: null, files: ids, createdAt: now, updatedAt: now };
}

/** Shows a job without its result. */
export function showListedJob(row: JobRow, seal: ComplianceSeal): ListedJobResponse {
  const code = codeOf(row);
  return {
    id: row.id,
    jobId: row.jobId,
    state: row.state,
    error: code === null ? null : { code, message: MESSAGES[code] ?? NOT_ASKED },
    files: row.request ? seal.request.open(row.id, row.request).files.map(({ id }) => id) : [],
    createdAt: row.createdAt,
    updatedAt: row.updatedAt,
  };
}

function codeOf({ state, fault }: JobRow): string | null {
  if (state === 'Unknown') return 'submission-unknown';
  return state === 'Abandoned' ? 'abandoned' : fault;
}
