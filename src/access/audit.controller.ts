import { Controller, Get, Query } from '@nestjs/common';
import { ApiOkResponse, ApiOperation, ApiTags } from '@nestjs/swagger';
import { AuditAnswer, AuditPage, AuditQuery } from './access.dto.js';
import { Audit } from './audit.js';
import { Scopes } from './scopes.js';

@ApiTags('access')
@Scopes('admin')
@Controller('v1/audit')
export class AuditController {
  constructor(private readonly audit: Audit) {}

  @Get()
  @ApiOperation({ summary: 'Who did what, the newest first' })
  @ApiOkResponse({ type: AuditPage })
  async list(@Query() query: AuditQuery): Promise<AuditPage> {
    const { limit, cursor, ...filter } = query;
    const { items, nextCursor } = await this.audit.list(filter, limit, cursor);
    return { items: items.map((row) => new AuditAnswer(row)), nextCursor };
  }
}
