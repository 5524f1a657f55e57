import { ApiProperty } from '@nestjs/swagger';

/** What the platform answered about a processing id of its own. */
export class ProcessingSessionResponse {
  /** The platform's */
  processingId!: string;

  /** Our id of the session that it belongs to */
  @ApiProperty({ type: String, format: 'uuid', nullable: true })
  session!: string | null;
  /** The platform's id of that session */
  sessionId!: string | null;

  /** What it answered when it was looked up, as it came; null until then */
  @ApiProperty({ nullable: true, type: 'object', additionalProperties: true })
  answer!: unknown;
  /** Why the last look-up failed, e.g. gone */
  fault!: string | null;
  updatedAt!: Date;
}

/** A PROCESSING_SESSION_NOTES_FINISHED event, of which the specification shows nothing. */
export class ProcessingNoticeResponse {
  deliveryId!: string;
  /** Where the contract file says that it stands */
  processingId!: string | null;
  /** Where the contract file says that it stands */
  sessionId!: string | null;

  /** The whole event as it came */
  @ApiProperty({ type: 'object', additionalProperties: true })
  body!: unknown;
  receivedAt!: Date;
}
