import { ApiPropertyOptional } from '@nestjs/swagger';
import { Type } from 'class-transformer';
import { IsBoolean, IsInt, IsObject, Matches, Min, ValidateIf, ValidateNested } from 'class-validator';
import { OneOf, OptionalMoment, OptionalOneOf } from '../../http/request/fields.js';
import { BIGINT, PageQuery, PageResponse } from '../../http/request/page.js';
import { EVENT_TYPES, type EventType } from '../../platform/contract/wire-types.js';
import { type CodeOf, codesOf, WORDS } from '../../words/words.js';

const DELIVERY_STATES = codesOf(WORDS.deliveryState);
export type DeliveryState = CodeOf<'deliveryState'>;

export class DeliveriesQuery extends PageQuery {
  @OptionalOneOf(DELIVERY_STATES)
  state?: DeliveryState;
}

export class ReplayPlanRequest {
  /** From the dry run */
  @IsInt()
  @Min(0)
  count!: number;

  /** From the dry run */
  @Matches(BIGINT, { message: 'must be the upToId of the dry run' })
  upToId!: string;
}

export class ReplayRequest {
  @OneOf(DELIVERY_STATES)
  state!: DeliveryState;

  @OptionalOneOf(EVENT_TYPES)
  eventType?: EventType;

  /** Exclusive */
  @OptionalMoment()
  receivedBefore?: string;

  /** Inclusive */
  @OptionalMoment()
  receivedSince?: string;

  /** True to count only. Defaults to false */
  @ApiPropertyOptional()
  @IsBoolean()
  dryRun: boolean = false;

  /** Required unless dryRun: the plan of the dry run */
  @ValidateIf((body: ReplayRequest) => !body.dryRun)
  @IsObject({ message: 'must be the plan of a dry run of the same selection' })
  @ValidateNested()
  @Type(() => ReplayPlanRequest)
  plan?: ReplayPlanRequest;
}

export class ReplayResponse {
  dryRun!: boolean;
  /** Replayed deliveries; with dryRun, selected ones */
  count!: number;
  /** Send it back to replay them */
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
  /** Null if the body contains none that can be shown */
  eventType!: string | null;
  /** The platform's id of the subject; null if the body contains none */
  subject!: string | null;
  state!: DeliveryState;
  receivedAt!: Date;
  /** Failed attempts since it was last received or replayed */
  attempts!: number;
  error!: DeliveryErrorResponse | null;
  /** Identical repeats. It was processed again after them */
  repeats!: number;
  /** Time in its timestamp header */
  sentAt!: Date;
  /** Index in PLATFORM_WEBHOOK_SECRET of the secret that signed it, from 0 */
  secretIndex!: number;
  processedAt!: Date | null;
  /** When it is processed next; null if no attempt is due */
  dueAt!: Date | null;
}

export class DeliveryPageResponse extends PageResponse {
  items!: DeliveryResponse[];
}
