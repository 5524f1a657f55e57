import { Readable } from 'node:stream';
import { Controller, Get, Headers, Query, Res } from '@nestjs/common';
import { ApiOkResponse, ApiTags } from '@nestjs/swagger';
import type { FastifyReply } from 'fastify';
import { Scopes } from '../identity/scopes.js';
import { AuditPageResponse, AuditQuery } from './audit.dto.js';
import { Audit } from './audit.js';
import { AuditSearches } from './audit-searches.js';

@ApiTags('access')
@Scopes('admin')
@Controller('v1/audit')
export class AuditController {
  constructor(
    private readonly audit: Audit,
    private readonly searches: AuditSearches,
  ) {}

  /**
   * Who did what and who saw what, the newest first: a page, or all of it
   *
   * @remarks With Accept: application/x-ndjson everything that is asked for comes, one entry on each line.
   */
  @Get()
  @ApiOkResponse({ type: AuditPageResponse, description: 'A page, or lines for Accept: application/x-ndjson' })
  async list(
    @Query() query: AuditQuery,
    @Headers('accept') accept: string | undefined,
    @Res() reply: FastifyReply,
  ): Promise<void> {
    const isExport = accept?.includes('application/x-ndjson');
    const answer = isExport ? Readable.from(this.searches.lines(query)) : await this.searches.page(query);
    await this.audit.commit();
    if (isExport) reply.header('content-type', 'application/x-ndjson');
    await reply.send(answer);
  }
}
