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

/** A call to the platform about the session. */
export class TimelineCallResponse {
  /** @example getSession */
  operation!: string;
  /** `answered`; `lost`: the process ended meanwhile; or what it failed with, such as `unknown-outcome` */
  outcome!: string;
  /** Of an answer that refused it */
  status!: number | null;
  /** Null where it was lost */
  durationMs!: number | null;
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

/** Something that happened to a session; of `event`, `call`, `request` and `notes` the one that `kind` names is there. */
export class TimelineEntryResponse {
  /** Unique within the session */
  key!: string;
  /** When the event was received, the call began, the request was made or ended, the notes were stored */
  at!: Date;
  kind!: 'event' | 'call' | 'request' | 'notes';
  event!: TimelineEventResponse | null;
  call!: TimelineCallResponse | null;
  request!: TimelineRequestResponse | null;
  notes!: TimelineNotesResponse | null;
}

export class TimelinePageResponse extends PageResponse {
  /** The newest first */
  items!: TimelineEntryResponse[];
}
