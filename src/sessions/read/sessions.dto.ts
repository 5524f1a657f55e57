import { ApiPropertyOptional } from '@nestjs/swagger';
import { IsIn, IsOptional, IsString, MaxLength, ValidateBy } from 'class-validator';
import { PageQuery } from '../../http/request/page.js';
import { PLATFORM_ID_MAX } from '../../platform/contract/platform-id.js';
import { isMoment } from '../model/field-rules.js';
import type { ShownState } from '../model/session-row.js';

const STATES: ShownState[] = ['InProgress', 'Processing', 'Done', 'Error', 'Requested', 'Unknown', 'Rejected'];

function IsMoment(): PropertyDecorator {
  const defaultMessage = () => 'must be a date such as 2026-01-31 or 2026-01-31T08:00:00Z';
  return ValidateBy({ name: 'isMoment', validator: { validate: isMoment, defaultMessage } });
}

/** `GET /v1/sessions` */
export class SessionsQuery extends PageQuery {
  /** External id of the provider */
  @IsOptional()
  @IsString()
  @MaxLength(512)
  provider?: string;

  /** External id of a client who took part */
  @IsOptional()
  @IsString()
  @MaxLength(512)
  client?: string;

  /** partnerAppointmentId */
  @IsOptional()
  @IsString()
  @MaxLength(PLATFORM_ID_MAX)
  appointment?: string;

  @IsOptional()
  @IsIn(STATES)
  state?: ShownState;

  @ApiPropertyOptional({ format: 'date-time' })
  @IsOptional()
  @IsMoment()
  updatedSince?: string;
}

/** `POST /v1/sessions/refreshes`: exactly one of the two. */
export class RefreshRequest {
  /** Every session recorded or changed since */
  @ApiPropertyOptional({ format: 'date-time' })
  @IsOptional()
  @IsMoment()
  since?: string;

  /** One session: our id or the platform's */
  @IsOptional()
  @IsString()
  @MaxLength(PLATFORM_ID_MAX)
  session?: string;
}
