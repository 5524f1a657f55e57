import { ApiProperty, ApiPropertyOptional } from '@nestjs/swagger';
import { Transform } from 'class-transformer';
import {
  ArrayMaxSize,
  IsArray,
  IsBoolean,
  IsIn,
  IsISO8601,
  IsOptional,
  IsString,
  Matches,
  MaxLength,
} from 'class-validator';
import { PageQuery } from '../../http/request/page.js';
import { PLANNED_OUTCOMES, type PlannedOutcome, ROW_OUTCOMES, type RowOutcome } from '../model/import-types.js';
import type { ImportKind } from '../parse/row/import-row.js';

/** Identifier systems of one import; each is a key more of everybody who is known. */
const ID_SYSTEMS_MAX = 20;

/** The query of `POST /v1/imports`. */
export class ImportQuery {
  @ApiProperty({ enum: ['providers', 'clients', 'fhir'] })
  @IsIn(['providers', 'clients', 'fhir'])
  kind!: ImportKind;

  @ApiPropertyOptional({ enum: ['upsert', 'snapshot'], default: 'upsert' })
  @IsIn(['upsert', 'snapshot'])
  mode: 'upsert' | 'snapshot' = 'upsert';

  @ApiPropertyOptional({ type: Boolean, default: false })
  @Transform(({ value }) => ({ true: true, '1': true, '': true, false: false, '0': false })[String(value)] ?? value)
  @IsBoolean({ message: 'must be true or false' })
  dryRun: boolean = false;

  @ApiPropertyOptional({ type: String, description: 'External id of the provider for clients that name none' })
  @IsOptional()
  @IsString()
  @MaxLength(200)
  defaultProvider?: string;

  @ApiPropertyOptional({
    type: String,
    description: 'FHIR identifier systems whose value is the external id, comma-separated',
  })
  @Transform(({ value }) => (typeof value === 'string' ? value.split(',').filter((system) => system !== '') : value))
  @IsArray()
  @ArrayMaxSize(ID_SYSTEMS_MAX)
  @IsString({ each: true })
  idSystem: string[] = [];

  @ApiPropertyOptional({
    type: String,
    format: 'date',
    description:
      'FHIR: encounters before this day name no provider; otherwise those of the last 365 days before the newest date of the files do',
  })
  @IsOptional()
  @Matches(/^\d{4}-\d\d-\d\d$/, { message: 'must be a day, such as 2026-01-31' })
  @IsISO8601({ strict: true }, { message: 'must be a day, such as 2026-01-31' })
  encounterSince?: string;
}

/** The query of `GET /v1/imports/{id}/rows`. */
export class ImportRowsQuery extends PageQuery {
  @ApiPropertyOptional({ enum: ROW_OUTCOMES })
  @IsOptional()
  @IsIn(ROW_OUTCOMES)
  outcome?: RowOutcome;

  @ApiPropertyOptional({ enum: PLANNED_OUTCOMES, description: 'The rows behind a count of the plan' })
  @IsOptional()
  @IsIn(PLANNED_OUTCOMES)
  planned?: PlannedOutcome;
}

/** `POST /v1/imports/{id}/apply`, and `/retry` */
export class ApplyDto {
  @ApiPropertyOptional({ type: [String], enum: ['deletes', 'providerRemovals', 'creates'] })
  @IsOptional()
  @IsArray()
  @IsIn(['deletes', 'providerRemovals', 'creates'], { each: true })
  override?: string[];
}
