import { Controller, Get, Query } from '@nestjs/common';
import { ApiTags } from '@nestjs/swagger';
import { Scopes } from '../identity/scopes.js';
import { AuditPageResponse, AuditQuery, AuditResponse } from './audit.dto.js';
import { Audit } from './audit.js';

@ApiTags('access')
@Scopes('admin')
@Controller('v1/audit')
export class AuditController {
  constructor(private readonly audit: Audit) {}

  /** Who did what, the newest first */
  @Get()
  async list(@Query() query: AuditQuery): Promise<AuditPageResponse> {
    const { limit, cursor, ...filter } = query;
    const { items, nextCursor } = await this.audit.list(filter, limit, cursor);
    return { items: items.map((row) => new AuditResponse(row)), nextCursor };
  }
}
