import { Body, Controller, Get, HttpCode, Post, Put, Query, Res } from '@nestjs/common';
import { ApiAcceptedResponse, ApiOkResponse, ApiTags } from '@nestjs/swagger';
import type { FastifyReply } from 'fastify';
import { Scopes } from '../../access/identity/scopes.js';
import { decodeCursor, type Page, PageQuery, pageOf } from '../../http/request/page.js';
import { RouteOptions } from '../../http/request/route-options.js';
import { ClientDisconnect, PreferWait } from '../../http/request/waiting.js';
import { PeopleService } from '../desired/people.service.js';
import { PersonResponse } from '../model/person-view.js';
import { PlatformUsersRepository, type UnknownPlatformUser } from '../store/platform-users.repository.js';
import {
  CLIENT_BODY_LIMIT,
  ClientProvidersRequest,
  ClientRequest,
  ProviderRequest,
  SearchRequest,
  TraceRequest,
} from './people.dto.js';
import { type StuckPerson, StuckRepository } from './people-monitoring.js';
import { ExternalIdParam, PersonController } from './person-routes.js';
import { type Trace, TraceService } from './trace.service.js';

/** Providers: the clinicians of the EHR. */
@ApiTags('people')
@Controller('v1/providers')
export class ProvidersController extends PersonController {
  constructor(people: PeopleService) {
    super(people, 'provider');
  }

  /** Sets what a provider is to be */
  @Put(':externalId')
  @Scopes('people:write')
  @ApiOkResponse({ type: PersonResponse, description: 'Mirrored' })
  @ApiAcceptedResponse({ type: PersonResponse, description: 'Kept; not mirrored yet' })
  async put(
    @ExternalIdParam() externalId: string,
    @Body() dto: ProviderRequest,
    @PreferWait() wait: number,
    @ClientDisconnect() signal: AbortSignal,
    @Res({ passthrough: true }) reply: FastifyReply,
  ): Promise<PersonResponse> {
    const { email, firstName, lastName } = dto;
    const view = await this.people.put({ kind: 'provider', externalId }, { email, firstName, lastName });
    return this.answer(reply, view, 'synced', wait, signal);
  }
}

/** Clients: the patients of the EHR. */
@ApiTags('people')
@Controller('v1/clients')
export class ClientsController extends PersonController {
  constructor(people: PeopleService) {
    super(people, 'client');
  }

  /** Sets what a client is to be */
  @Put(':externalId')
  @Scopes('people:write')
  @RouteOptions({ bodyLimit: CLIENT_BODY_LIMIT })
  @ApiOkResponse({ type: PersonResponse, description: 'Mirrored' })
  @ApiAcceptedResponse({ type: PersonResponse, description: 'Kept; not mirrored yet' })
  async put(
    @ExternalIdParam() externalId: string,
    @Body() dto: ClientRequest,
    @PreferWait() wait: number,
    @ClientDisconnect() signal: AbortSignal,
    @Res({ passthrough: true }) reply: FastifyReply,
  ): Promise<PersonResponse> {
    const { email = null, firstName, lastName, providers } = dto;
    const view = await this.people.put({ kind: 'client', externalId }, { email, firstName, lastName }, providers);
    return this.answer(reply, view, 'synced', wait, signal);
  }

  /** Replaces the providers of a client; the first is the primary */
  @Put(':externalId/providers')
  @Scopes('people:write')
  @RouteOptions({ bodyLimit: CLIENT_BODY_LIMIT })
  @ApiOkResponse({ type: PersonResponse, description: 'Mirrored' })
  @ApiAcceptedResponse({ type: PersonResponse, description: 'Kept; not mirrored yet' })
  async putProviders(
    @ExternalIdParam() externalId: string,
    @Body() dto: ClientProvidersRequest,
    @PreferWait() wait: number,
    @ClientDisconnect() signal: AbortSignal,
    @Res({ passthrough: true }) reply: FastifyReply,
  ): Promise<PersonResponse> {
    const view = await this.people.putClientProviders(externalId, dto.providers);
    return this.answer(reply, view, 'synced', wait, signal);
  }
}

/** Questions about people of either kind; nothing is sent to the platform. */
@ApiTags('people')
@Controller('v1/people')
export class PeopleController {
  constructor(
    private readonly people: PeopleService,
    private readonly traces: TraceService,
    private readonly users: PlatformUsersRepository,
    private readonly stuckPeople: StuckRepository,
  ) {}

  /** People who have been in one state for too long, the oldest first */
  @Get('stuck')
  @Scopes('people:read')
  async stuck(@Query() query: PageQuery): Promise<Page<StuckPerson>> {
    const [since, id] = decodeCursor<[string, string]>(query.cursor, 'time', 'uuid') ?? [];
    const people = await this.stuckPeople.list(query.limit + 1, since && id ? { since, id } : undefined);
    return pageOf(
      people,
      query.limit,
      (person) => [person.since, person.id],
      ({ id: _, ...person }) => person,
    );
  }

  /** Users of the platform whom the EHR does not know */
  @Get('unknown-to-ehr')
  @Scopes('people:read')
  async unknownToEhr(@Query() query: PageQuery): Promise<Page<UnknownPlatformUser>> {
    const [after] = decodeCursor<[string]>(query.cursor, 'string') ?? [''];
    const users = await this.users.list(query.limit + 1, after);
    return pageOf(
      users,
      query.limit,
      (user) => [user.platformUserId],
      (user) => user,
    );
  }

  /** Finds people by email or external id */
  @Post('search')
  @HttpCode(200)
  @Scopes('people:read')
  async search(@Body() dto: SearchRequest): Promise<Page<PersonResponse>> {
    return { items: await this.people.search(dto), nextCursor: null };
  }

  /** What is wanted, known and next of a person, and why; sends nothing */
  @Post('trace')
  @HttpCode(200)
  @Scopes('people:read')
  async trace(@Body() dto: TraceRequest): Promise<Trace> {
    return this.traces.trace(dto);
  }
}
