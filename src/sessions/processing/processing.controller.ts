import { Controller, Get, Param } from '@nestjs/common';
import { ApiTags } from '@nestjs/swagger';
import { AuditedRead } from '../../access/audit/audit.interceptor.js';
import { Scopes } from '../../access/identity/scopes.js';
import { ProcessingReadsRepository } from './processing-reads.repository.js';
import { ProcessingNoticeResponse, ProcessingSessionResponse } from './processing-view.js';

/** What the Processing API answered; the feed names these routes. */
@ApiTags('sessions')
@Controller('v1')
@Scopes('notes:read')
export class ProcessingController {
  constructor(private readonly reader: ProcessingReadsRepository) {}

  /** What the platform answered about a processing id, and its session */
  @Get('processing-sessions/:processingId')
  @AuditedRead()
  async session(@Param('processingId') processingId: string): Promise<ProcessingSessionResponse> {
    return this.reader.session(processingId);
  }

  /** An event whose content the specification does not show, as it came */
  @Get('processing-notices/:deliveryId')
  @AuditedRead()
  async notice(@Param('deliveryId') deliveryId: string): Promise<ProcessingNoticeResponse> {
    return this.reader.notice(deliveryId);
  }
}
