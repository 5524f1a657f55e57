import {
  COMPLIANCE_CRITERIA,
  COMPLIANCE_CRITERIA_GROUPS,
  type ComplianceFile,
} from '../../src/platform/contract/wire-types.js';
import { type Fields, isChoice, objectOf, requiredText, requiredTexts } from '../body-fields.js';
import { invalid } from '../refusal.js';
import type { UploadStore } from '../uploads/upload-store.js';

/** A batch check of PDF documents. */
export interface ComplianceJob {
  jobId: string;
  files: ComplianceFile[];
  criteria: (typeof COMPLIANCE_CRITERIA)[number][];
  status: 'processing' | 'completed' | 'failed';
  willFail: boolean;
}

/** Reads a job (spec, Compliance job submission). @throws Refusal 400 that names the field and the rule */
export function readComplianceJob(
  body: unknown,
  uploads: UploadStore,
): Pick<ComplianceJob, 'files' | 'criteria'> & { allPdf: boolean } {
  const fields = objectOf(body);
  if (!Array.isArray(fields.files) || fields.files.length === 0)
    throw invalid('files is required and must not be empty.');
  const files = fields.files.map((item: unknown) => {
    const file = objectOf(item, 'Each of files');
    return { id: requiredText(file, 'id'), url: requiredText(file, 'url') };
  });
  const sent = files.map(({ url }) => uploads.findByFileUrl(url));
  if (!sent.every((upload) => upload?.kind === 'compliance')) {
    throw invalid('The url of a file must come from the compliance upload-url endpoint.');
  }
  if (!sent.every((upload) => upload?.sha256)) throw invalid('A file must be uploaded before it is listed.');
  const criteria = choices(fields, 'criteria', COMPLIANCE_CRITERIA);
  const groups = choices(fields, 'criteriaGroups', COMPLIANCE_CRITERIA_GROUPS);
  // The spec does not show the contents of the group therapy_notes; here it contains everything.
  const all = groups.length > 0 || criteria.length === 0;
  return {
    files,
    criteria: all ? [...COMPLIANCE_CRITERIA] : criteria,
    allPdf: sent.every((upload) => upload?.isPdf),
  };
}

/** The answer to GET /compliance/job/{jobId}, in the simulator's own format. */
export function complianceView(job: ComplianceJob): object {
  if (job.status !== 'completed') return { jobId: job.jobId, status: job.status };
  const results = job.criteria.map((criterion, index) => {
    const met = index % 4 !== 3;
    return { criterion, met, evidence: met ? `Found on page ${(index % 3) + 1}.` : 'Not found in the document.' };
  });
  return { jobId: job.jobId, status: job.status, files: job.files.map(({ id }) => ({ id, results })) };
}

function choices<Choice extends string>(fields: Fields, name: string, allowed: readonly Choice[]): Choice[] {
  if (fields[name] === undefined || fields[name] === null) return [];
  return requiredTexts(fields, name).map((value) => {
    if (!isChoice(value, allowed)) throw invalid(`${name} must contain only: ${allowed.join(', ')}.`);
    return value;
  });
}
