import { Controller, Get, Headers, Query, Res } from '@nestjs/common';
import { ApiOkResponse, ApiProduces, ApiTags } from '@nestjs/swagger';
import type { FastifyReply } from 'fastify';
import { Audit } from '../access/audit/audit.js';
import { StreamedAnswers } from '../access/guard/streamed-answers.js';
import { Caller, type Principal, Scopes } from '../access/identity/scopes.js';
import { Problems } from '../http/problem/described-problems.js';
import { PageQuery } from '../http/request/page.js';
import { ExternalIdParam } from '../people/api/people.controller.js';
import { ClientExport } from './client-export.js';
import { DisclosurePageResponse } from './client-records.dto.js';
import { Disclosures } from './disclosures.js';
import { asJson, asLines } from './export-text.js';

const LINES = 'application/x-ndjson';

/** What is held of one client, and to whom it was disclosed. */
@ApiTags('people')
@Controller('v1/clients/:externalId')
@Problems({ 404: ['client-not-found'] })
export class ClientRecordsController {
  constructor(
    private readonly exports: ClientExport,
    private readonly disclosures: Disclosures,
    private readonly audit: Audit,
    private readonly answers: StreamedAnswers,
  ) {}

  /**
   * Everything that is held about a client
   *
   * @remarks For an access request (45 CFR 164.524): a JSON document, or lines of JSON, sent as it is read. One that is
   * whole ends with `complete`.
   */
  @Get('export')
  @Scopes('people:read', 'sessions:read', 'notes:read')
  @ApiProduces('application/json', LINES)
  @ApiOkResponse({ schema: { type: 'object', additionalProperties: true } })
  async export(
    @ExternalIdParam() externalId: string,
    @Headers('accept') accept: string | undefined,
    @Caller() caller: Principal,
    @Res() reply: FastifyReply,
  ): Promise<void> {
    const sections = await this.exports.sectionsOf(externalId);
    await this.audit.commit();
    const inLines = accept?.includes(LINES) ?? false;
    const text = inLines ? asLines(sections) : asJson(sections);
    reply.header('content-type', inLines ? LINES : 'application/json; charset=utf-8');
    await this.answers.send(reply, caller, text);
  }

  /**
   * To whom something of a client was disclosed, the newest first
   *
   * @remarks For an accounting of disclosures (45 CFR 164.528): what went to the platform, and what keys did with the
   * client or were shown of it. A request that showed more than fifty clients at once left their number alone.
   */
  @Get('disclosures')
  @Problems({ 400: ['bad-cursor'] })
  @Scopes('admin')
  async list(@ExternalIdParam() externalId: string, @Query() query: PageQuery): Promise<DisclosurePageResponse> {
    return this.disclosures.list(externalId, query);
  }
}
