import { ApiProperty, ApiPropertyOptional } from '@nestjs/swagger';
import { IsOptional, IsString, MaxLength } from 'class-validator';
import { PageQuery } from '../../http/request/page.js';
import type { AuditRow } from './audit.repository.js';

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
