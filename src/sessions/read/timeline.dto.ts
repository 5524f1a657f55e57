import { PickType } from '@nestjs/swagger';
import { PageResponse } from '../../http/request/page.js';
import type { DeliveryState } from '../../webhooks/admin/deliveries.dto.js';
import type { CodeOf } from '../../words/words.js';
import { DocumentResponse } from '../model/session-view.js';

/** A webhook delivery about the session, or about one of its processing ids. */
export class TimelineEventResponse {
  deliveryId!: string;
  /** @example SESSION_PROCESSING_COMPLETED */
  eventType!: string;
  /** When it was sent, by the platform's clock: the timestamp of the delivery */
  sentAt!: Date;
  state!: DeliveryState;
  /** Why it failed, is dead or was ignored; otherwise null */
  reason!: string | null;
  /** Identical repeats of the delivery */
  repeats!: number;
}

/** A state of the EHR's request for the session. */
export class TimelineRequestResponse {
  state!: CodeOf<'requestState'>;
}

/** A stored version of a document's notes, without its text. */
export class TimelineNotesResponse extends PickType(DocumentResponse, [
  ...(['documentId', 'noteTemplateId', 'noteTemplateName', 'revision'] as const),
]) {}

/** An entry of the timeline; `kind` names the one of `event`, `request` and `notes` that is present. */
export class TimelineEntryResponse {
  /** Unique within the session */
  key!: string;
  /** When the event was received, the request was received or ended, or the notes were stored */
  at!: Date;
  kind!: 'event' | 'request' | 'notes';
  event!: TimelineEventResponse | null;
  request!: TimelineRequestResponse | null;
  notes!: TimelineNotesResponse | null;
}

export class TimelinePageResponse extends PageResponse {
  /** Newest first */
  items!: TimelineEntryResponse[];
}
