import { ApiPropertyOptional } from '@nestjs/swagger';
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
  @IsIn(['providers', 'clients', 'fhir'])
  kind!: ImportKind;

  @ApiPropertyOptional()
  @IsIn(['upsert', 'snapshot'])
  mode: 'upsert' | 'snapshot' = 'upsert';

  @ApiPropertyOptional()
  @Transform(({ value }) => ({ true: true, '1': true, '': true, false: false, '0': false })[String(value)] ?? value)
  @IsBoolean({ message: 'must be true or false' })
  dryRun: boolean = false;

  /** External id of the provider for clients that name none */
  @IsOptional()
  @IsString()
  @MaxLength(200)
  defaultProvider?: string;

  /** FHIR identifier systems whose value is the external id, comma-separated */
  @ApiPropertyOptional({ type: String, isArray: false })
  @Transform(({ value }) => (typeof value === 'string' ? value.split(',').filter((system) => system !== '') : value))
  @IsArray()
  @ArrayMaxSize(ID_SYSTEMS_MAX)
  @IsString({ each: true })
  idSystem: string[] = [];

  /**
   * FHIR: encounters before this day name no provider; otherwise those of the last 365 days before the newest date of
   * the files do
   */
  @ApiPropertyOptional({ format: 'date' })
  @IsOptional()
  @Matches(/^\d{4}-\d\d-\d\d$/, { message: 'must be a day, such as 2026-01-31' })
  @IsISO8601({ strict: true }, { message: 'must be a day, such as 2026-01-31' })
  encounterSince?: string;
}

/** The query of `GET /v1/imports/{id}/rows`. */
export class ImportRowsQuery extends PageQuery {
  @IsOptional()
  @IsIn(ROW_OUTCOMES)
  outcome?: RowOutcome;

  /** The rows behind a count of the plan */
  @IsOptional()
  @IsIn(PLANNED_OUTCOMES)
  planned?: PlannedOutcome;
}

/** `POST /v1/imports/{id}/apply`, and `/retry` */
export class ApplyRequest {
  @IsOptional()
  @IsArray()
  @IsIn(['deletes', 'providerRemovals', 'creates'], { each: true })
  override?: ('deletes' | 'providerRemovals' | 'creates')[];
}
