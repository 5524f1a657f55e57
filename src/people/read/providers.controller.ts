import { Body, Controller, Put, Res } from '@nestjs/common';
import { ApiAcceptedResponse, ApiOkResponse, ApiTags } from '@nestjs/swagger';
import type { FastifyReply } from 'fastify';
import { Scopes } from '../../access/identity/scopes.js';
import { ClientDisconnect } from '../../http/request/client-disconnect.js';
import { PreferWait } from '../../http/request/prefer.js';
import { PeopleService } from '../desired/people.service.js';
import { PersonResponse } from '../model/person-view.js';
import { ExternalIdParam } from './external-id.pipe.js';
import { ProviderRequest } from './people.dto.js';
import { answerWith } from './people-answers.js';
import { PersonController } from './person-routes.js';

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
    return answerWith(reply, await this.people.awaitSettled(view, wait, signal), 'synced');
  }
}
