import { ApiProperty, ApiPropertyOptional } from '@nestjs/swagger';
import { ArrayNotEmpty, ArrayUnique, IsIn, IsOptional, IsString, MaxLength, MinLength } from 'class-validator';
import { PageQuery } from '../http/page.js';
import type { ApiKeyRow } from './api-keys.repository.js';
import type { AuditRow } from './audit.repository.js';
import { SCOPES, type Scope } from './scopes.js';

export class NewApiKeyBody {
  @ApiProperty({ type: String, minLength: 1, maxLength: 100, description: 'What the key is for; not a person' })
  @IsString()
  @MinLength(1)
  @MaxLength(100)
  name!: string;

  @ApiProperty({ enum: SCOPES, isArray: true })
  @ArrayNotEmpty()
  @ArrayUnique()
  @IsIn(SCOPES, { each: true })
  scopes!: Scope[];
}

export class ApiKeyAnswer {
  @ApiProperty({ type: String, format: 'uuid' })
  id: string;

  @ApiProperty({ type: String })
  name: string;

  @ApiProperty({ type: String, description: 'The first characters of the key, for recognition' })
  prefix: string;

  @ApiProperty({ enum: SCOPES, isArray: true })
  scopes: Scope[];

  @ApiProperty({ type: String, format: 'date-time' })
  createdAt: string;

  @ApiProperty({ type: String, format: 'date-time', nullable: true })
  revokedAt: string | null;

  constructor(row: ApiKeyRow) {
    this.id = row.id;
    this.name = row.name;
    this.prefix = row.prefix;
    this.scopes = row.scopes;
    this.createdAt = row.createdAt.toISOString();
    this.revokedAt = row.revokedAt?.toISOString() ?? null;
  }
}

export class NewApiKeyAnswer extends ApiKeyAnswer {
  @ApiProperty({ type: String, description: 'The key itself, shown this once' })
  key: string;

  constructor(row: ApiKeyRow, key: string) {
    super(row);
    this.key = key;
  }
}

export class ApiKeyPage {
  @ApiProperty({ type: ApiKeyAnswer, isArray: true })
  items!: ApiKeyAnswer[];

  @ApiProperty({ type: String, nullable: true })
  nextCursor!: string | null;
}

export class AuditQuery extends PageQuery {
  @ApiPropertyOptional({ type: String, description: 'Only what this key did' })
  @IsOptional()
  @IsString()
  @MaxLength(100)
  keyId?: string;

  @ApiPropertyOptional({ type: String, example: 'POST /v1/imports' })
  @IsOptional()
  @IsString()
  @MaxLength(200)
  action?: string;

  @ApiPropertyOptional({ type: String, description: 'Only what was done to the subject with this id' })
  @IsOptional()
  @IsString()
  @MaxLength(200)
  subject?: string;
}

export class AuditAnswer {
  @ApiProperty({ type: String })
  id: string;

  @ApiProperty({ type: String, format: 'date-time' })
  at: string;

  @ApiProperty({ type: String, description: 'Id of the key, `admin` or `system`' })
  keyId: string;

  @ApiProperty({ type: String })
  keyName: string;

  @ApiProperty({ type: String, example: 'PUT /v1/providers/:externalId' })
  action: string;

  @ApiProperty({ type: Object, description: 'Ids by what they are ids of' })
  subjects: Record<string, string>;

  @ApiProperty({ type: String, description: 'HTTP status, or a word' })
  outcome: string;

  constructor(row: AuditRow) {
    this.id = row.id;
    this.at = row.at.toISOString();
    this.keyId = row.keyId;
    this.keyName = row.keyName;
    this.action = row.action;
    this.subjects = row.subjects;
    this.outcome = row.outcome;
  }
}

export class AuditPage {
  @ApiProperty({ type: AuditAnswer, isArray: true })
  items!: AuditAnswer[];

  @ApiProperty({ type: String, nullable: true })
  nextCursor!: string | null;
}
