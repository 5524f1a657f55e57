import { getSchemaPath, type RequestBodyObject, type SchemaObject } from '@nestjs/swagger';
import { validationPipe } from '../../http/body/validation.js';
import { COMPLIANCE_CRITERIA, COMPLIANCE_CRITERIA_GROUPS } from '../../platform/contract/wire-types.js';
import type { ComplianceRequest } from '../model/job-row.js';
import { PDF_LIMIT_BYTES } from '../model/pdf-parts.js';
import { ComplianceJobRequest } from './compliance.dto.js';

const PDF: SchemaObject = { type: 'string', format: 'binary' };

const listOf = (values: readonly string[]): SchemaObject => ({
  type: 'array',
  items: { type: 'string', enum: [...values] },
  description: 'A part that repeats, or one that holds several, split by commas',
});

/** What `POST /v1/compliance/jobs` takes, as OpenAPI has it. */
export const JOB_REQUEST_BODY: RequestBodyObject = {
  required: true,
  content: {
    'multipart/form-data': {
      schema: {
        type: 'object',
        required: ['files'],
        properties: {
          files: {
            type: 'array',
            items: PDF,
            minItems: 1,
            description: `PDFs of at most ${PDF_LIMIT_BYTES / 1024 ** 2} MiB each. They are called file-1, file-2, … in the job; a part of another name gives its file that id.`,
          },
          criteria: listOf(COMPLIANCE_CRITERIA),
          criteriaGroups: listOf(COMPLIANCE_CRITERIA_GROUPS),
        },
        additionalProperties: PDF,
      },
      encoding: { files: { contentType: 'application/pdf' } },
    },
    'application/json': { schema: { $ref: getSchemaPath(ComplianceJobRequest) } },
  },
};

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
