import { Body, Controller, Put, Res } from '@nestjs/common';
import { ApiAcceptedResponse, ApiOkResponse, ApiTags } from '@nestjs/swagger';
import type { FastifyReply } from 'fastify';
import { Scopes } from '../../access/identity/scopes.js';
import { ClientDisconnect } from '../../http/request/client-disconnect.js';
import { PreferWait } from '../../http/request/prefer.js';
import { RouteOptions } from '../../http/request/route-options.js';
import { PeopleService } from '../desired/people.service.js';
import { PersonResponse } from '../model/person-view.js';
import { ExternalIdParam } from './external-id.pipe.js';
import { CLIENT_BODY_LIMIT, ClientProvidersRequest, ClientRequest } from './people.dto.js';
import { answerWith } from './people-answers.js';
import { PersonController } from './person-routes.js';

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
    const { email, firstName, lastName, providers } = dto;
    const view = await this.people.put(
      { kind: 'client', externalId },
      { email: email ?? null, firstName, lastName },
      providers,
    );
    return answerWith(reply, await this.people.awaitSettled(view, wait, signal), 'synced');
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
    return answerWith(reply, await this.people.awaitSettled(view, wait, signal), 'synced');
  }
}
