import {
  ApiProperty,
  ApiPropertyOptional,
  getSchemaPath,
  type RequestBodyObject,
  type SchemaObject,
} from '@nestjs/swagger';
import { Type } from 'class-transformer';
import { ArrayNotEmpty, IsArray, MinLength, ValidateNested } from 'class-validator';
import { VisibleTo } from '../access/guard/visible-to.js';
import { validationPipe } from '../http/body/validation.js';
import { OneOf, OptionalListOf, OptionalOneOf, OptionalSize } from '../http/request/fields.js';
import { PageQuery, PageResponse } from '../http/request/page.js';
import { IsLinkTarget } from '../platform/contract/is-platform-id.js';
import {
  COMPLIANCE_CRITERIA,
  COMPLIANCE_CRITERIA_GROUPS,
  type SubmitComplianceJobRequest,
} from '../platform/contract/wire-types.js';
import { type CodeOf, codesOf, WORDS } from '../words/words.js';
import { PDF_LIMIT_BYTES } from './pdf-form.js';

const NOT_EMPTY = { message: 'must be a text, and not empty' };

export class ComplianceFileRequest {
  /** @example visit-17 */
  @MinLength(1, NOT_EMPTY)
  id!: string;

  /** From POST /v1/compliance/upload-url, after the upload */
  @MinLength(1, NOT_EMPTY)
  url!: string;
}

/** `POST /v1/compliance/jobs` (spec, Compliance job submission). */
export class ComplianceJobRequest {
  @IsArray({ message: 'must be a list of files' })
  @ArrayNotEmpty({ message: 'must hold at least one file' })
  @ValidateNested({ each: true })
  @Type(() => ComplianceFileRequest)
  files!: ComplianceFileRequest[];

  @OptionalListOf(COMPLIANCE_CRITERIA)
  criteria?: (typeof COMPLIANCE_CRITERIA)[number][] | null;

  @OptionalListOf(COMPLIANCE_CRITERIA_GROUPS)
  criteriaGroups?: (typeof COMPLIANCE_CRITERIA_GROUPS)[number][] | null;
}

/** `POST /v1/compliance/upload-url` */
export class ComplianceUploadRequest {
  /** Bytes */
  @OptionalSize(PDF_LIMIT_BYTES)
  size?: number;
}

/** `GET /v1/compliance/jobs` */
export class ComplianceJobsQuery extends PageQuery {
  @OptionalOneOf(codesOf(WORDS.complianceState))
  state?: CodeOf<'complianceState'>;

  /** Only jobs that await this decision */
  @OptionalOneOf(codesOf(WORDS.complianceReview))
  review?: CodeOf<'complianceReview'>;
}

/** `POST /v1/compliance/jobs/{id}/resolve` */
export class ResolveJobRequest {
  @OneOf(['link', 'abandon'])
  action!: 'link' | 'abandon';

  /** The platform's id of the job; with `link` only */
  @IsLinkTarget()
  jobId?: string;
}

export class JobErrorResponse {
  /** @example submission-unknown */
  code!: string;
  message!: string;
}

/** A compliance job as lists show it, without clinical text. */
export class ListedJobResponse {
  @ApiProperty({ format: 'uuid' })
  id!: string;
  /** The platform's id */
  jobId!: string | null;
  state!: CodeOf<'complianceState'>;
  error!: JobErrorResponse | null;
  /** Ids of the files, in order */
  files!: string[];
  createdAt!: Date;
  updatedAt!: Date;
  /** When files and result were removed by COMPLIANCE_RETENTION_DAYS; null: they are kept */
  removedAt!: Date | null;
  /** Fields that are empty because their stored value cannot be decrypted; absent: none */
  unreadable?: string[];
}

/** A way to resolve a job. */
export class JobChoiceResponse {
  action!: 'link' | 'abandon';
  /** The effect of the action */
  does!: string;
}

export class ComplianceJobResponse extends ListedJobResponse {
  /** As the platform returned it */
  @VisibleTo('notes:read')
  @ApiPropertyOptional({ nullable: true, type: 'object', additionalProperties: true })
  result?: unknown;
  /** Why the platform rejected the job, in its words */
  @VisibleTo('notes:read')
  platformMessage?: string | null;
  /** The ways to resolve it now; empty: none */
  choices!: JobChoiceResponse[];
}

export class ComplianceJobPageResponse extends PageResponse {
  items!: ListedJobResponse[];
}

const PDF: SchemaObject = { type: 'string', format: 'binary' };
const FILES = `PDFs of at most ${PDF_LIMIT_BYTES / 1024 ** 2} MiB each. Their ids are file-1, file-2, …; a part with another name gives its file that id.`;
const listOf = (values: readonly string[]): SchemaObject => ({
  type: 'array',
  items: { type: 'string', enum: [...values] },
  description: 'Repeat the part, or separate values by commas',
});

/** OpenAPI description of the body of `POST /v1/compliance/jobs`. */
export const JOB_REQUEST_BODY: RequestBodyObject = {
  required: true,
  content: {
    'multipart/form-data': {
      schema: {
        type: 'object',
        required: ['files'],
        properties: {
          files: { type: 'array', items: PDF, minItems: 1, description: FILES },
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

/** Validates a submission, sent as JSON or built from a form. Empty lists are left out. @throws {Problem} 400 `validation` */
export async function jobBody(body: unknown): Promise<SubmitComplianceJobRequest> {
  const dto: ComplianceJobRequest = await pipe.transform(body ?? {}, { type: 'body', metatype: ComplianceJobRequest });
  return {
    files: dto.files.map(({ id, url }) => ({ id, url })),
    ...(dto.criteria?.length && { criteria: dto.criteria }),
    ...(dto.criteriaGroups?.length && { criteriaGroups: dto.criteriaGroups }),
  };
}
