import { Body, Controller, Delete, Get, HttpCode, Put, Query, Res } from '@nestjs/common';
import { ApiOkResponse, ApiTags } from '@nestjs/swagger';
import type { FastifyReply } from 'fastify';
import { StreamedAnswers } from '../access/guard/streamed-answers.js';
import { Caller, type Principal, Scopes } from '../access/identity/scopes.js';
import { StepUp } from '../access/identity/step-up.js';
import { Audit } from '../audit/audit.js';
import { Problem } from '../http/problem/problem.js';
import { decodeCursor, PageQuery, pageOf } from '../http/request/page.js';
import { ExternalIdParam } from '../people/api/people.controller.js';
import { PersonResponse } from '../people/api/person-view.js';
import { ClientExport } from './client-export.service.js';
import { DisclosurePageResponse, LegalHoldRequest } from './client-records.dto.js';
import { type DisclosurePlace, DisclosuresRepository } from './disclosures.repository.js';
import { exportText } from './export-text.js';
import { LegalHolds } from './legal-hold.service.js';

/** The stored data of a client, and its disclosures. */
@ApiTags('people')
@Controller('v1/clients/:externalId')
export class ClientRecordsController {
  constructor(
    private readonly exports: ClientExport,
    private readonly disclosures: DisclosuresRepository,
    private readonly holds: LegalHolds,
    private readonly audit: Audit,
    private readonly answers: StreamedAnswers,
  ) {}

  /**
   * Export everything stored about a client
   *
   * @remarks For an access request (45 CFR 164.524): a JSON document, streamed. A complete export ends with `complete`. It
   * holds the invite link only with `invites:read`.
   */
  @Get('export')
  @StepUp()
  @Scopes('people:read', 'sessions:read', 'notes:read')
  @ApiOkResponse({ schema: { type: 'object', additionalProperties: true } })
  async export(
    @ExternalIdParam() externalId: string,
    @Caller() caller: Principal,
    @Res() reply: FastifyReply,
  ): Promise<void> {
    const sections = await this.exports.sectionsOf(externalId, caller);
    await this.audit.commit();
    reply.header('content-type', 'application/json; charset=utf-8');
    await this.answers.send(reply, caller, exportText(sections));
  }

  /**
   * List the disclosures of a client, newest first
   *
   * @remarks For an accounting of disclosures (45 CFR 164.528): data sent to the platform, and requests with API keys
   * that changed or read the client, for as long as the audit log is kept. `excluded` says what an accounting for the
   * individual may leave out. A request that showed more than 50 clients or sessions is on the list of each client that it
   * may have shown, with `isCertain: false`.
   */
  @Get('disclosures')
  @Scopes('admin')
  async list(
    @ExternalIdParam() externalId: string,
    @Query() { limit, cursor }: PageQuery,
  ): Promise<DisclosurePageResponse> {
    const client = await this.disclosures.find(externalId);
    if (!client) throw new Problem('client-not-found', 'No client ever had this external id. Check the id.');
    this.audit.about('client', externalId);
    const place = decodeCursor<DisclosurePlace>(cursor, 'time', 'time', 'string');
    return pageOf(
      await this.disclosures.list(client, limit + 1, place),
      limit,
      ({ asOf, at, mark }): DisclosurePlace => [asOf.toISOString(), at.toISOString(), mark],
      ({ asOf: _, mark: __, ...disclosure }) => disclosure,
    );
  }

  /**
   * Set a legal hold, which keeps everything about a client
   *
   * @remarks Until its release, retention and erasure skip the client and those merged with it. A deletion waits with the
   * code `legal-hold`, here and on the platform. The audit log keeps who set the hold, and why.
   */
  @Put('legal-hold')
  @Scopes('admin')
  @ApiOkResponse({ type: PersonResponse })
  async hold(@ExternalIdParam() externalId: string, @Body() { reason }: LegalHoldRequest): Promise<PersonResponse> {
    return this.holds.set(externalId, reason);
  }

  /**
   * Release a legal hold
   *
   * @remarks A deletion that waited for it follows.
   */
  @Delete('legal-hold')
  @HttpCode(200)
  @Scopes('admin')
  @ApiOkResponse({ type: PersonResponse })
  async release(@ExternalIdParam() externalId: string): Promise<PersonResponse> {
    return this.holds.release(externalId);
  }
}
