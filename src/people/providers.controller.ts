import { Body, Controller, Delete, Get, HttpCode, Post, Put, Query, Res } from '@nestjs/common';
import { ApiAcceptedResponse, ApiOkResponse, ApiOperation, ApiTags } from '@nestjs/swagger';
import type { FastifyReply } from 'fastify';
import { AuditedRead } from '../access/audit.interceptor.js';
import { Scopes } from '../access/scopes.js';
import { HangUp } from '../http/hang-up.js';
import type { Page } from '../http/page.js';
import { PreferWait } from '../http/prefer.js';
import { ExternalIdParam } from './external-id.pipe.js';
import { PeopleQuery, ProviderDto, ResolveDto } from './people.dto.js';
import { PeopleService } from './people.service.js';
import { answerWith, listPage } from './people-answers.js';
import { PersonView } from './person-view.js';

/** Providers: the clinicians of the EHR. */
@ApiTags('people')
@Controller('v1/providers')
export class ProvidersController {
  constructor(private readonly people: PeopleService) {}

  @Put(':externalId')
  @ApiOperation({ summary: 'Sets what a provider is to be' })
  @Scopes('people:write')
  @ApiOkResponse({ type: PersonView, description: 'Mirrored' })
  @ApiAcceptedResponse({ type: PersonView, description: 'Kept; not mirrored yet' })
  async put(
    @ExternalIdParam() externalId: string,
    @Body() dto: ProviderDto,
    @PreferWait() wait: number,
    @HangUp() signal: AbortSignal,
    @Res({ passthrough: true }) reply: FastifyReply,
  ): Promise<PersonView> {
    const { email, firstName, lastName } = dto;
    const view = await this.people.putProvider(externalId, { email, firstName, lastName });
    return answerWith(reply, await this.people.awaitSettled(view, wait, signal), 'synced');
  }

  @Get(':externalId')
  @ApiOperation({ summary: 'One provider, and where the mirroring stands' })
  @Scopes('people:read')
  @AuditedRead()
  @ApiOkResponse({ type: PersonView })
  async get(
    @ExternalIdParam() externalId: string,
    @PreferWait() wait: number,
    @HangUp() signal: AbortSignal,
  ): Promise<PersonView> {
    return this.people.show({ kind: 'provider', externalId }, wait, signal);
  }

  @Get()
  @ApiOperation({ summary: 'Providers that are not deleted, by state if asked' })
  @Scopes('people:read')
  @AuditedRead()
  async list(@Query() query: PeopleQuery): Promise<Page<PersonView>> {
    return listPage(this.people, 'provider', query);
  }

  @Delete(':externalId')
  @ApiOperation({ summary: 'Deletes a provider here and on the platform' })
  @Scopes('people:write')
  @ApiOkResponse({ type: PersonView, description: 'Deleted' })
  @ApiAcceptedResponse({ type: PersonView, description: 'Kept; not deleted on the platform yet' })
  async remove(
    @ExternalIdParam() externalId: string,
    @PreferWait() wait: number,
    @HangUp() signal: AbortSignal,
    @Res({ passthrough: true }) reply: FastifyReply,
  ): Promise<PersonView> {
    const view = await this.people.remove({ kind: 'provider', externalId });
    return answerWith(reply, await this.people.awaitSettled(view, wait, signal), 'deleted');
  }

  @Post(':externalId/resolve')
  @ApiOperation({ summary: 'Settles by a human being what the service could not' })
  @HttpCode(200)
  @Scopes('people:write')
  @ApiOkResponse({ type: PersonView })
  async resolve(
    @ExternalIdParam() externalId: string,
    @Body() dto: ResolveDto,
    @PreferWait() wait: number,
    @HangUp() signal: AbortSignal,
  ): Promise<PersonView> {
    const view = await this.people.resolve({ kind: 'provider', externalId }, dto.action, dto.platformUserId);
    return this.people.awaitSettled(view, wait, signal);
  }
}
