import { Controller, Get, Param } from '@nestjs/common';
import { ApiOkResponse, ApiOperation, ApiTags } from '@nestjs/swagger';
import { AuditedRead } from '../../access/audit/audit.interceptor.js';
import { Scopes } from '../../access/identity/scopes.js';
import { ProcessingReader } from './processing-reader.js';
import { ProcessingNoticeView, ProcessingSessionView } from './processing-view.js';

/** What the Processing API told; the feed names these routes. */
@ApiTags('sessions')
@Controller('v1')
@Scopes('notes:read')
export class ProcessingController {
  constructor(private readonly reader: ProcessingReader) {}

  @Get('processing-sessions/:processingId')
  @ApiOperation({ summary: 'What the platform answered about a processing id, and its session' })
  @AuditedRead()
  @ApiOkResponse({ type: ProcessingSessionView })
  async session(@Param('processingId') processingId: string): Promise<ProcessingSessionView> {
    return this.reader.session(processingId);
  }

  @Get('processing-notices/:deliveryId')
  @ApiOperation({ summary: 'An event whose content the specification does not show, as it came' })
  @AuditedRead()
  @ApiOkResponse({ type: ProcessingNoticeView })
  async notice(@Param('deliveryId') deliveryId: string): Promise<ProcessingNoticeView> {
    return this.reader.notice(deliveryId);
  }
}
