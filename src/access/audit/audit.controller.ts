import { Controller, Get, Query } from '@nestjs/common';
import { ApiTags } from '@nestjs/swagger';
import { Scopes } from '../identity/scopes.js';
import { AuditPageResponse, AuditQuery } from './audit.dto.js';
import { Audit } from './audit.js';

@ApiTags('access')
@Scopes('admin')
@Controller('v1/audit')
export class AuditController {
  constructor(private readonly audit: Audit) {}

  /** Who did what, the newest first */
  @Get()
  list(@Query() query: AuditQuery): Promise<AuditPageResponse> {
    return this.audit.list(query);
  }
}
