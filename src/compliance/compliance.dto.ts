import {
  ApiProperty,
  ApiPropertyOptional,
  getSchemaPath,
  OmitType,
  type RequestBodyObject,
  type SchemaObject,
} from '@nestjs/swagger';
import { Type } from 'class-transformer';
import {
  ArrayNotEmpty,
  IsArray,
  IsIn,
  IsInt,
  IsNotEmpty,
  IsOptional,
  IsString,
  Matches,
  Max,
  Min,
  ValidateIf,
  ValidateNested,
} from 'class-validator';
import { validationPipe } from '../http/body/validation.js';
import { PageQuery, PageResponse } from '../http/request/page.js';
import { IsPlatformId } from '../platform/contract/is-platform-id.js';
import { COMPLIANCE_CRITERIA, COMPLIANCE_CRITERIA_GROUPS } from '../platform/contract/wire-types.js';
import { type ComplianceRequest, JOB_STATES, type JobState, REVIEWS, type Review } from './job.js';
import { PDF_LIMIT_BYTES } from './pdf-form.js';

export class ComplianceFileRequest {
  /** @example visit-17 */
  @IsString()
  @IsNotEmpty()
  id!: string;

  /** From POST /v1/compliance/upload-url, after the upload */
  @IsString()
  @IsNotEmpty()
  url!: string;
}

/** `POST /v1/compliance/jobs` (spec, Compliance job submission). */
export class ComplianceJobRequest {
  @IsArray({ message: 'must be a list of files' })
  @ArrayNotEmpty({ message: 'must hold at least one file' })
  @ValidateNested({ each: true })
  @Type(() => ComplianceFileRequest)
  files!: ComplianceFileRequest[];

  @IsOptional()
  @IsArray({ message: 'must be a list of criteria' })
  @IsIn(COMPLIANCE_CRITERIA, { each: true, message: `must hold only: ${COMPLIANCE_CRITERIA.join(', ')}` })
  criteria?: (typeof COMPLIANCE_CRITERIA)[number][] | null;

  @IsOptional()
  @IsArray({ message: 'must be a list of criteria groups' })
  @IsIn(COMPLIANCE_CRITERIA_GROUPS, { each: true, message: `must hold only: ${COMPLIANCE_CRITERIA_GROUPS.join(', ')}` })
  criteriaGroups?: (typeof COMPLIANCE_CRITERIA_GROUPS)[number][] | null;
}

/** `POST /v1/compliance/upload-url` */
export class ComplianceUploadRequest {
  /** Bytes */
  @ApiPropertyOptional({ minimum: 1, maximum: PDF_LIMIT_BYTES })
  @IsOptional()
  @IsInt()
  @Min(1)
  @Max(PDF_LIMIT_BYTES)
  size?: number;
}

/** Where a PDF is uploaded before a job names it. */
export class ComplianceUploadResponse {
  /** Send the PDF here with `method` and `headers`, and without an API key */
  uploadUrl!: string;
  /** Names the file in POST /v1/compliance/jobs afterwards */
  url!: string;
  /** @example PUT */
  method!: string;
  headers!: Record<string, string>;
}

/** `GET /v1/compliance/jobs` */
export class ComplianceJobsQuery extends PageQuery {
  @IsOptional()
  @IsIn(JOB_STATES)
  state?: JobState;

  /** Only jobs that await this decision */
  @IsOptional()
  @IsIn(REVIEWS)
  review?: Review;
}

/** `POST /v1/compliance/jobs/{id}/resolve` */
export class ResolveJobRequest {
  @IsIn(['link', 'create', 'abandon'])
  action!: 'link' | 'create' | 'abandon';

  /** The platform's id of the job; with `link` only */
  @ValidateIf((dto: ResolveJobRequest) => dto.action === 'link' || dto.jobId !== undefined)
  @IsString()
  @Matches(/^\S+$/, { message: 'must be the id of a job on the platform' })
  @IsPlatformId()
  jobId?: string;
}

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

  /** As the platform returned it; omitted for a key without `notes:read` */
  @ApiPropertyOptional({ nullable: true, type: 'object', additionalProperties: true })
  result?: unknown;
  /** Why the platform rejected the job, in its words; omitted for a key without `notes:read` */
  platformMessage?: string | null;
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

/** A job for a key that may not read clinical text. */
export function jobWithoutText(job: ComplianceJobResponse): ComplianceJobResponse {
  return { ...job, result: undefined, platformMessage: undefined };
}

/** A job in a list, without clinical text. */
export class ListedJobResponse extends OmitType(ComplianceJobResponse, ['result', 'platformMessage'] as const) {}

export class ComplianceJobPageResponse extends PageResponse {
  items!: ListedJobResponse[];
}

const PDF: SchemaObject = { type: 'string', format: 'binary' };
const REPEATED = 'Repeat the part, or separate values by commas';
const listOf = (values: readonly string[]) =>
  ({ type: 'array', items: { type: 'string', enum: [...values] }, description: REPEATED }) satisfies SchemaObject;
const FILES = `PDFs of at most ${PDF_LIMIT_BYTES / 1024 ** 2} MiB each. Their ids are file-1, file-2, …; a part with another name gives its file that id.`;

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

/**
 * Validates a submission, sent as JSON or built from a form.
 *
 * @throws {Problem} 400 `validation`
 */
export async function jobBody(body: unknown): Promise<ComplianceRequest> {
  const dto: ComplianceJobRequest = await pipe.transform(body ?? {}, { type: 'body', metatype: ComplianceJobRequest });
  const { files, criteria, criteriaGroups } = dto;
  return { files, criteria: criteria ?? [], criteriaGroups: criteriaGroups ?? [] };
}
