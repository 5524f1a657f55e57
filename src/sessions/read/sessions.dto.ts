import { ApiPropertyOptional } from '@nestjs/swagger';
import { IsIn, IsOptional, IsString, MaxLength } from 'class-validator';
import { IsMoment } from '../../http/request/is-moment.js';
import { PageQuery } from '../../http/request/page.js';
import { PLATFORM_ID_MAX } from '../../platform/contract/wire-types.js';
import type { ShownState } from '../model/session-row.js';

const STATES: ShownState[] = ['InProgress', 'Processing', 'Done', 'Error', 'Requested', 'Unknown', 'Rejected'];
const ORDERS = ['oldest-first', 'newest-first'] as const;

/** `GET /v1/sessions` */
export class SessionsQuery extends PageQuery {
  /** External id of the provider */
  @IsOptional()
  @IsString()
  @MaxLength(512)
  provider?: string;

  /** External id of a client */
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

  /** By last change; defaults to oldest-first, so that a returning reader gets only changed sessions */
  @IsOptional()
  @IsIn(ORDERS)
  order?: (typeof ORDERS)[number];
}

/** `GET /v1/sessions/refreshes` */
export class PendingQuery {
  /** Only this session: our id or the platform's */
  @IsOptional()
  @IsString()
  @MaxLength(PLATFORM_ID_MAX)
  session?: string;
}

/** `POST /v1/sessions/refreshes`: exactly one of the two. */
export class RefreshRequest {
  /** Every session created or changed since */
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
