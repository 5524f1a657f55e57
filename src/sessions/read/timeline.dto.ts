import { ApiProperty } from '@nestjs/swagger';
import { PageResponse } from '../../http/request/page.js';
import type { DeliveryState } from '../../webhooks/admin/deliveries.dto.js';

/** A webhook delivery about the session, or about one of its processing ids. */
export class TimelineEventResponse {
  deliveryId!: string;
  /** @example SESSION_PROCESSING_COMPLETED */
  eventType!: string;
  /** When it happened, by the platform's clock: the timestamp of the delivery */
  sentAt!: Date;
  state!: DeliveryState;
  /** Why it failed, is given up or is ignored; null: none of these */
  reason!: string | null;
  /** Exact repeats of the delivery */
  repeats!: number;
}

/** A moment in the life of the EHR's request for the session. */
export class TimelineRequestResponse {
  state!: 'Requested' | 'Settled' | 'Rejected' | 'Abandoned';
}

/** A version of a document's notes that was stored; never what it says. */
export class TimelineNotesResponse {
  @ApiProperty({ format: 'uuid' })
  documentId!: string;
  noteTemplateId!: string;
  revision!: number;
}

/** Something that happened to a session; one of `event`, `request` and `notes` is present, named by `kind`. */
export class TimelineEntryResponse {
  /** Unique within the session */
  key!: string;
  /** When the event was received, the request was made or ended, or the notes were stored */
  at!: Date;
  kind!: 'event' | 'request' | 'notes';
  event!: TimelineEventResponse | null;
  request!: TimelineRequestResponse | null;
  notes!: TimelineNotesResponse | null;
}

export class TimelinePageResponse extends PageResponse {
  /** The newest first */
  items!: TimelineEntryResponse[];
}
