import { Controller, Get, Headers, Query, Res } from '@nestjs/common';
import { ApiExtraModels, ApiOkResponse, ApiTags, getSchemaPath } from '@nestjs/swagger';
import type { FastifyReply } from 'fastify';
import { Problems } from '../http/problem/described-problems.js';
import { AuditPageResponse, AuditQuery, AuditResponse } from './audit/audit.dto.js';
import { Audit } from './audit/audit.js';
import { AuditSearches } from './audit/audit-searches.js';
import { StreamedAnswers } from './guard/streamed-answers.js';
import { Caller, type Principal, Scopes } from './identity/scopes.js';

const LINES = 'application/x-ndjson';

@ApiTags('access')
@Scopes('admin')
@Controller('v1/audit')
export class AuditController {
  constructor(
    private readonly audit: Audit,
    private readonly searches: AuditSearches,
    private readonly answers: StreamedAnswers,
  ) {}

  /**
   * Who did what and who saw what, the newest first: a page, or all of it
   *
   * @remarks With Accept: application/x-ndjson everything that is asked for comes, one entry on each line.
   */
  @Get()
  @Problems({ 400: ['bad-cursor'] })
  @ApiExtraModels(AuditResponse, AuditPageResponse)
  @ApiOkResponse({
    description: 'A page, or lines for Accept: application/x-ndjson',
    content: {
      'application/json': { schema: { $ref: getSchemaPath(AuditPageResponse) } },
      [LINES]: { schema: { $ref: getSchemaPath(AuditResponse) } },
    },
  })
  async list(
    @Query() query: AuditQuery,
    @Headers('accept') accept: string | undefined,
    @Caller() caller: Principal,
    @Res() reply: FastifyReply,
  ): Promise<void> {
    if (accept?.includes(LINES)) {
      const lines = this.searches.lines(query);
      await this.audit.commit();
      await this.answers.send(reply.header('content-type', LINES), caller, lines);
      return;
    }
    const page = await this.searches.page(query);
    await this.audit.commit();
    await reply.send(page);
  }
}
