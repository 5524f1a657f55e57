import { validationPipe } from '../../http/body/validation.js';
import type { ComplianceRequest } from '../model/compliance-request.js';
import { ComplianceJobRequest } from './compliance.dto.js';

const pipe = validationPipe();

/**
 * Holds a submission to the rules of its fields, whether it came as JSON or was made from a form.
 *
 * @throws {Problem} 400 `validation`
 */
export async function jobBody(body: unknown): Promise<ComplianceRequest> {
  const dto: ComplianceJobRequest = await pipe.transform(body ?? {}, { type: 'body', metatype: ComplianceJobRequest });
  const { files, criteria, criteriaGroups } = dto;
  return { files, criteria: criteria ?? [], criteriaGroups: criteriaGroups ?? [] };
}
