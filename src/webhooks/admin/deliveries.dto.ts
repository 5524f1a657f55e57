import { ApiProperty, ApiPropertyOptional } from '@nestjs/swagger';
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
import { PageQuery } from '../../http/request/page.js';
import { EVENT_TYPES } from '../../platform/contract/wire-types.js';
import type { RejectionCount } from '../receive/rejections.repository.js';
import { DELIVERY_STATES, type DeliveryRow, type DeliveryState } from './deliveries.repository.js';
import { reasonMessage } from './reason-message.js';

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
  @ApiPropertyOptional({ enum: DELIVERY_STATES })
  @IsOptional()
  @IsIn(DELIVERY_STATES)
  state?: DeliveryState;
}

export class ReplayPlanBody {
  @ApiProperty({ type: Number, minimum: 0, description: 'As counted by the dry run' })
  @IsInt()
  @Min(0)
  count!: number;

  @ApiProperty({ type: String, description: 'As told by the dry run' })
  @Matches(ID, { message: 'must be the upToId of the dry run' })
  upToId!: string;
}

export class ReplayBody {
  @ApiProperty({ enum: DELIVERY_STATES })
  @IsIn(DELIVERY_STATES)
  state!: DeliveryState;

  @ApiPropertyOptional({ enum: EVENT_TYPES })
  @IsOptional()
  @IsIn(EVENT_TYPES)
  eventType?: string;

  @ApiPropertyOptional({ type: String, format: 'date-time', description: 'Exclusive' })
  @IsOptional()
  @isoDate
  @IsDate(DATE)
  receivedBefore?: Date;

  @ApiPropertyOptional({ type: String, format: 'date-time', description: 'Inclusive' })
  @IsOptional()
  @isoDate
  @IsDate(DATE)
  receivedSince?: Date;

  @ApiPropertyOptional({ type: Boolean, default: false, description: 'Count only: answers the plan of the replay' })
  @IsBoolean()
  dryRun: boolean = false;

  @ApiPropertyOptional({ type: ReplayPlanBody, description: 'Required unless dryRun: what the dry run answered' })
  @ValidateIf((body: ReplayBody) => !body.dryRun)
  @IsObject({ message: 'must hold count and upToId as a dry run of the same selection answered them' })
  @ValidateNested()
  @Type(() => ReplayPlanBody)
  plan?: ReplayPlanBody;
}

export class ReplayAnswer {
  @ApiProperty({ type: Boolean })
  dryRun: boolean;

  @ApiProperty({ type: Number, description: 'Deliveries that are, or would be, processed again' })
  count: number;

  @ApiProperty({ type: ReplayPlanBody, description: 'To be sent back to replay exactly these' })
  plan: ReplayPlanBody;

  constructor(dryRun: boolean, plan: ReplayPlanBody) {
    this.dryRun = dryRun;
    this.count = plan.count;
    this.plan = { count: plan.count, upToId: plan.upToId };
  }
}

export class DeliveryError {
  @ApiProperty({ type: String, example: 'unknown-event-type' })
  code!: string;

  @ApiProperty({ type: String })
  message!: string;
}

/** A delivery without its content. */
export class DeliveryAnswer {
  @ApiProperty({ type: String })
  id: string;

  @ApiProperty({ type: String, nullable: true, description: 'Null until it was looked at' })
  eventType: string | null;

  @ApiProperty({ enum: DELIVERY_STATES })
  state: DeliveryState;

  @ApiProperty({ type: String, format: 'date-time' })
  receivedAt: string;

  @ApiProperty({ type: Number, description: 'Failed ones since it was received, repeated or replayed' })
  attempts: number;

  @ApiProperty({ type: DeliveryError, nullable: true })
  error: DeliveryError | null;

  @ApiProperty({ type: Number, description: 'Exact repeats; each of them had it processed again' })
  repeats: number;

  @ApiProperty({ type: String, format: 'date-time', description: 'Its timestamp header' })
  sentAt: string;

  @ApiProperty({ type: Number, description: 'Which of the webhook secrets had signed it, from 0' })
  secretIndex: number;

  @ApiProperty({ type: String, format: 'date-time', nullable: true })
  processedAt: string | null;

  @ApiProperty({ type: String, format: 'date-time', nullable: true, description: 'When a worker looks at it next' })
  dueAt: string | null;

  constructor(row: DeliveryRow) {
    this.id = row.id;
    this.eventType = row.eventType;
    this.state = row.state;
    this.receivedAt = row.receivedAt.toISOString();
    this.attempts = row.attempts;
    this.error =
      row.reason === null ? null : { code: row.reason.split(' ', 1)[0] ?? '', message: reasonMessage(row.reason) };
    this.repeats = row.repeats;
    this.sentAt = new Date(Number(row.sentAt)).toISOString();
    this.secretIndex = row.secretIndex;
    this.processedAt = row.processedAt?.toISOString() ?? null;
    this.dueAt = row.dueAt?.toISOString() ?? null;
  }
}

export class DeliveryPage {
  @ApiProperty({ type: [DeliveryAnswer] })
  items!: DeliveryAnswer[];

  @ApiProperty({ type: String, nullable: true })
  nextCursor!: string | null;
}

export class RejectionAnswer {
  @ApiProperty({ type: String, format: 'date-time', description: 'Beginning of the minute' })
  minute: string;

  @ApiProperty({ type: String, example: 'wrong-signature' })
  cause: string;

  @ApiProperty({ type: Number })
  count: number;

  constructor(row: RejectionCount) {
    this.minute = row.minute.toISOString();
    this.cause = row.cause;
    this.count = row.count;
  }
}

export class RejectionPage {
  @ApiProperty({ type: [RejectionAnswer] })
  items!: RejectionAnswer[];

  @ApiProperty({ type: String, nullable: true })
  nextCursor!: string | null;
}
