import { ApiProperty } from '@nestjs/swagger';

/** What the platform told of a processing id of its own. */
export class ProcessingSessionView {
  @ApiProperty({ type: String, description: "The platform's" })
  processingId!: string;

  @ApiProperty({
    type: String,
    format: 'uuid',
    nullable: true,
    description: 'Our id of the session that it belongs to',
  })
  session!: string | null;

  @ApiProperty({ type: String, nullable: true, description: "The platform's id of that session" })
  sessionId!: string | null;

  @ApiProperty({
    nullable: true,
    type: 'object',
    additionalProperties: true,
    description: 'What it answered when it was looked up, as it came; null until then',
  })
  answer!: unknown;

  @ApiProperty({ type: String, nullable: true, description: 'Why the last look-up failed, e.g. gone' })
  fault!: string | null;

  @ApiProperty({ type: String, format: 'date-time' })
  updatedAt!: string;
}

/** A PROCESSING_SESSION_NOTES_FINISHED event, of which the specification shows nothing. */
export class ProcessingNoticeView {
  @ApiProperty({ type: String })
  deliveryId!: string;

  @ApiProperty({ type: String, nullable: true, description: 'Where the contract file says that it stands' })
  processingId!: string | null;

  @ApiProperty({ type: String, nullable: true, description: 'Where the contract file says that it stands' })
  sessionId!: string | null;

  @ApiProperty({ type: 'object', additionalProperties: true, description: 'The whole event as it came' })
  body!: unknown;

  @ApiProperty({ type: String, format: 'date-time' })
  receivedAt!: string;
}
