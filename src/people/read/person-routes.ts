import { Body, Delete, Get, HttpCode, Post, Query, Res } from '@nestjs/common';
import { ApiAcceptedResponse, ApiOkResponse, ApiOperation } from '@nestjs/swagger';
import type { FastifyReply } from 'fastify';
import { AuditedRead } from '../../access/audit/audit.interceptor.js';
import { Scopes } from '../../access/identity/scopes.js';
import { ClientDisconnect } from '../../http/request/client-disconnect.js';
import type { Page } from '../../http/request/page.js';
import { PreferWait } from '../../http/request/prefer.js';
import type { PeopleService } from '../desired/people.service.js';
import type { PersonKind } from '../model/person.js';
import { PersonResponse } from '../model/person-view.js';
import { ExternalIdParam } from './external-id.pipe.js';
import { PeopleQuery, ResolveRequest } from './people.dto.js';
import { answerWith, listPage } from './people-answers.js';

/**
 * What the EHR asks of people in the same way, whichever their kind. The file isn't named a controller's, since metadata
 * of inherited methods can't be applied: their decorators describe them.
 */
export abstract class PersonController {
  protected constructor(
    protected readonly people: PeopleService,
    private readonly kind: PersonKind,
  ) {}

  @Get(':externalId')
  @ApiOperation({ summary: 'One of them, and where the mirroring stands' })
  @Scopes('people:read')
  @AuditedRead()
  @ApiOkResponse({ type: PersonResponse })
  async get(
    @ExternalIdParam() externalId: string,
    @PreferWait() wait: number,
    @ClientDisconnect() signal: AbortSignal,
  ): Promise<PersonResponse> {
    return this.people.show({ kind: this.kind, externalId }, wait, signal);
  }

  @Get()
  @ApiOperation({ summary: 'All that are not deleted, by state if asked' })
  @Scopes('people:read')
  @AuditedRead()
  async list(@Query() query: PeopleQuery): Promise<Page<PersonResponse>> {
    return listPage(this.people, this.kind, query);
  }

  @Delete(':externalId')
  @ApiOperation({ summary: 'Deletes one here and on the platform' })
  @Scopes('people:write')
  @ApiOkResponse({ type: PersonResponse, description: 'Deleted' })
  @ApiAcceptedResponse({ type: PersonResponse, description: 'Kept; not deleted on the platform yet' })
  async remove(
    @ExternalIdParam() externalId: string,
    @PreferWait() wait: number,
    @ClientDisconnect() signal: AbortSignal,
    @Res({ passthrough: true }) reply: FastifyReply,
  ): Promise<PersonResponse> {
    const view = await this.people.remove({ kind: this.kind, externalId });
    return answerWith(reply, await this.people.awaitSettled(view, wait, signal), 'deleted');
  }

  @Post(':externalId/resolve')
  @ApiOperation({ summary: 'Settles by a human being what the service could not' })
  @HttpCode(200)
  @Scopes('people:write')
  @ApiOkResponse({ type: PersonResponse })
  async resolve(
    @ExternalIdParam() externalId: string,
    @Body() dto: ResolveRequest,
    @PreferWait() wait: number,
    @ClientDisconnect() signal: AbortSignal,
  ): Promise<PersonResponse> {
    const view = await this.people.resolve({ kind: this.kind, externalId }, dto.action, dto.platformUserId);
    return this.people.awaitSettled(view, wait, signal);
  }
}
