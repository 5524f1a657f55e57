import { ApiPropertyOptional } from '@nestjs/swagger';
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
import { PageQuery } from '../../http/request/page.js';
import { COMPLIANCE_CRITERIA, COMPLIANCE_CRITERIA_GROUPS, IsPlatformId } from '../../platform/contract/wire-types.js';
import { JOB_STATES, type JobState } from '../model/job-row.js';
import { PDF_LIMIT_BYTES } from '../model/pdf-parts.js';

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

/** Where a PDF is sent before a job names it. */
export class ComplianceUploadResponse {
  /** Send the PDF here, with `method` and `headers`, without any key */
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
}

export type ResolveJobAction = 'link' | 'create' | 'abandon';

/** `POST /v1/compliance/jobs/{id}/resolve` */
export class ResolveJobRequest {
  @IsIn(['link', 'create', 'abandon'])
  action!: ResolveJobAction;

  /** The platform's id of the job; with `link` only */
  @ValidateIf((dto: ResolveJobRequest) => dto.action === 'link' || dto.jobId !== undefined)
  @IsString()
  @Matches(/^\S+$/, { message: 'must be the id of a job on the platform' })
  @IsPlatformId()
  jobId?: string;
}
