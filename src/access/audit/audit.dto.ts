import { IsOptional, IsString, MaxLength } from 'class-validator';
import { PageQuery, PageResponse } from '../../http/request/page.js';

/** All that is given must hold. */
export class AuditQuery extends PageQuery {
  /** Only what this key did */
  @IsOptional()
  @IsString()
  @MaxLength(100)
  keyId?: string;

  /** @example "POST /v1/imports" */
  @IsOptional()
  @IsString()
  @MaxLength(200)
  action?: string;

  /** Only what was done to the subject with this id */
  @IsOptional()
  @IsString()
  @MaxLength(200)
  subject?: string;
}

export class AuditResponse {
  id!: string;
  at!: Date;
  /** Id of the key, `admin` or `system` */
  keyId!: string;
  keyName!: string;
  /** @example "PUT /v1/providers/:externalId" */
  action!: string;
  /** Ids by what they are ids of */
  subjects!: Record<string, string>;
  /** HTTP status, or a word */
  outcome!: string;
}

export class AuditPageResponse extends PageResponse {
  items!: AuditResponse[];
}
