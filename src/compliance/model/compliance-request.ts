import type {
  ComplianceCriteriaGroup,
  ComplianceCriterion,
  ComplianceFile,
  SubmitComplianceJobRequest,
} from '../../platform/contract/wire-types.js';

/** What a compliance check is asked for: files that are at the platform's store, and by what they are judged. */
export interface ComplianceRequest {
  files: ComplianceFile[];
  criteria: ComplianceCriterion[];
  criteriaGroups: ComplianceCriteriaGroup[];
}

/** The body of a submission (spec, Compliance job submission); empty lists are left out, for they are optional. */
export function submissionOf({ files, criteria, criteriaGroups }: ComplianceRequest): SubmitComplianceJobRequest {
  return {
    files: files.map(({ id, url }) => ({ id, url })),
    ...(criteria.length > 0 && { criteria }),
    ...(criteriaGroups.length > 0 && { criteriaGroups }),
  };
}
