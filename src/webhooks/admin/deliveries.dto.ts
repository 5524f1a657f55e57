import { ApiPropertyOptional } from '@nestjs/swagger';
import { Transform, Type } from 'class-transformer';
import {
  IsBoolean,
  IsDate,
  IsIn,
  IsInt,
  IsObject,
  IsOptional,
  Matches,
  Min,
  ValidateIf,
  ValidateNested,
} from 'class-validator';
import { PageQuery, PageResponse } from '../../http/request/page.js';
import { EVENT_TYPES, type EventType } from '../../platform/contract/wire-types.js';
import type { RejectionCount } from '../receive/rejections.repository.js';
import { DELIVERY_STATES, type DeliveryRow, type DeliveryState, reasonMessage } from './deliveries.repository.js';

/** Ids fit PostgreSQL's bigint. */
const ID = /^\d{1,18}$/;

// `new Date('1')` is a date to JavaScript; only ISO 8601 is one here. What is none stays text and fails @IsDate.
const isoDate = Transform(({ value }) =>
  typeof value === 'string' && /^\d{4}-\d{2}-\d{2}(T[\d:.]+(Z|[+-]\d{2}:\d{2}))?$/.test(value)
    ? new Date(value)
    : value,
);
const DATE = { message: 'must be a date and time such as 2026-11-21T09:30:00Z' };

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
  @Matches(ID, { message: 'must be the upToId of the dry run' })
  upToId!: string;
}

export class ReplayRequest {
  @IsIn(DELIVERY_STATES)
  state!: DeliveryState;

  @IsOptional()
  @IsIn(EVENT_TYPES)
  eventType?: EventType;

  /** Exclusive */
  @IsOptional()
  @isoDate
  @IsDate(DATE)
  receivedBefore?: Date;

  /** Inclusive */
  @IsOptional()
  @isoDate
  @IsDate(DATE)
  receivedSince?: Date;

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
  dryRun: boolean;
  /** Deliveries that are, or would be, processed again */
  count: number;
  /** To be sent back to replay exactly these */
  plan: ReplayPlanRequest;

  constructor(dryRun: boolean, plan: ReplayPlanRequest) {
    this.dryRun = dryRun;
    this.count = plan.count;
    this.plan = { count: plan.count, upToId: plan.upToId };
  }
}

export class DeliveryErrorResponse {
  /** @example unknown-event-type */
  code!: string;
  message!: string;
}

/** A delivery without its content. */
export class DeliveryResponse {
  id: string;
  /** Null until it was looked at */
  eventType: string | null;
  state: DeliveryState;
  receivedAt: Date;
  /** Failed ones since it was received, repeated or replayed */
  attempts: number;
  error: DeliveryErrorResponse | null;
  /** Exact repeats; each of them had it processed again */
  repeats: number;
  /** Its timestamp header */
  sentAt: Date;
  /** Which of the webhook secrets had signed it, from 0 */
  secretIndex: number;
  processedAt: Date | null;
  /** When a worker looks at it next */
  dueAt: Date | null;

  constructor(row: DeliveryRow) {
    this.id = row.id;
    this.eventType = row.eventType;
    this.state = row.state;
    this.receivedAt = row.receivedAt;
    this.attempts = row.attempts;
    this.error =
      row.reason === null ? null : { code: row.reason.split(' ', 1)[0] ?? '', message: reasonMessage(row.reason) };
    this.repeats = row.repeats;
    this.sentAt = new Date(Number(row.sentAt));
    this.secretIndex = row.secretIndex;
    this.processedAt = row.processedAt;
    this.dueAt = row.dueAt;
  }
}

export class DeliveryPageResponse extends PageResponse {
  items!: DeliveryResponse[];
}

export class RejectionResponse {
  /** Beginning of the minute */
  minute: Date;
  /** @example wrong-signature */
  cause: string;
  count: number;

  constructor(row: RejectionCount) {
    this.minute = row.minute;
    this.cause = row.cause;
    this.count = row.count;
  }
}

export class RejectionPageResponse extends PageResponse {
  items!: RejectionResponse[];
}
