import { ApiPropertyOptional } from '@nestjs/swagger';
import { Type } from 'class-transformer';
import {
  IsBoolean,
  IsIn,
  IsInt,
  IsObject,
  IsOptional,
  Matches,
  Min,
  ValidateIf,
  ValidateNested,
} from 'class-validator';
import { IsMoment } from '../../http/request/is-moment.js';
import { BIGINT, PageQuery, PageResponse } from '../../http/request/page.js';
import { EVENT_TYPES, type EventType } from '../../platform/contract/wire-types.js';

const DELIVERY_STATES = ['received', 'processed', 'ignored', 'not-understood', 'failed', 'dead'] as const;
export type DeliveryState = (typeof DELIVERY_STATES)[number];

export class DeliveriesQuery extends PageQuery {
  @IsOptional()
  @IsIn(DELIVERY_STATES)
  state?: DeliveryState;
}

export class ReplayPlanRequest {
  /** As counted by the dry run */
  @IsInt()
  @Min(0)
  count!: number;

  /** As counted by the dry run */
  @Matches(BIGINT, { message: 'must be the upToId of the dry run' })
  upToId!: string;
}

export class ReplayRequest {
  @IsIn(DELIVERY_STATES)
  state!: DeliveryState;

  @IsOptional()
  @IsIn(EVENT_TYPES)
  eventType?: EventType;

  /** Exclusive */
  @ApiPropertyOptional({ format: 'date-time' })
  @IsOptional()
  @IsMoment()
  receivedBefore?: string;

  /** Inclusive */
  @ApiPropertyOptional({ format: 'date-time' })
  @IsOptional()
  @IsMoment()
  receivedSince?: string;

  /** Count only: answers the plan of the replay */
  @ApiPropertyOptional()
  @IsBoolean()
  dryRun: boolean = false;

  /** Required unless dryRun: what the dry run answered */
  @ValidateIf((body: ReplayRequest) => !body.dryRun)
  @IsObject({ message: 'must hold count and upToId as a dry run of the same selection answered them' })
  @ValidateNested()
  @Type(() => ReplayPlanRequest)
  plan?: ReplayPlanRequest;
}

export class ReplayResponse {
  dryRun!: boolean;
  /** Deliveries that are, or would be, processed again */
  count!: number;
  /** To be sent back to replay exactly these */
  plan!: ReplayPlanRequest;
}

export class DeliveryErrorResponse {
  /** @example unknown-event-type */
  code!: string;
  message!: string;
}

/** A delivery without its content. */
export class DeliveryResponse {
  id!: string;
  /** Null until it was looked at */
  eventType!: string | null;
  state!: DeliveryState;
  receivedAt!: Date;
  /** Failed ones since it was received, repeated or replayed */
  attempts!: number;
  error!: DeliveryErrorResponse | null;
  /** Exact repeats; each of them had it processed again */
  repeats!: number;
  /** Its timestamp header */
  sentAt!: Date;
  /** Which of the webhook secrets had signed it, from 0 */
  secretIndex!: number;
  processedAt!: Date | null;
  /** When a worker looks at it next */
  dueAt!: Date | null;
}

export class DeliveryPageResponse extends PageResponse {
  items!: DeliveryResponse[];
}

export class RejectionResponse {
  /** Beginning of the minute */
  minute!: Date;
  /** @example wrong-signature */
  cause!: string;
  count!: number;
}

export class RejectionPageResponse extends PageResponse {
  items!: RejectionResponse[];
}
