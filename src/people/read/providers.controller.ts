import { Body, Controller, Put, Res } from '@nestjs/common';
import { ApiAcceptedResponse, ApiOkResponse, ApiOperation, ApiTags } from '@nestjs/swagger';
import type { FastifyReply } from 'fastify';
import { Scopes } from '../../access/identity/scopes.js';
import { ClientDisconnect } from '../../http/request/client-disconnect.js';
import { PreferWait } from '../../http/request/prefer.js';
import { PeopleService } from '../desired/people.service.js';
import { PersonView } from '../model/person-view.js';
import { ExternalIdParam } from './external-id.pipe.js';
import { ProviderDto } from './people.dto.js';
import { answerWith } from './people-answers.js';
import { PersonController } from './person.controller.js';

/** Providers: the clinicians of the EHR. */
@ApiTags('people')
@Controller('v1/providers')
export class ProvidersController extends PersonController {
  constructor(people: PeopleService) {
    super(people, 'provider');
  }

  @Put(':externalId')
  @ApiOperation({ summary: 'Sets what a provider is to be' })
  @Scopes('people:write')
  @ApiOkResponse({ type: PersonView, description: 'Mirrored' })
  @ApiAcceptedResponse({ type: PersonView, description: 'Kept; not mirrored yet' })
  async put(
    @ExternalIdParam() externalId: string,
    @Body() dto: ProviderDto,
    @PreferWait() wait: number,
    @ClientDisconnect() signal: AbortSignal,
    @Res({ passthrough: true }) reply: FastifyReply,
  ): Promise<PersonView> {
    const { email, firstName, lastName } = dto;
    const view = await this.people.putProvider(externalId, { email, firstName, lastName });
    return answerWith(reply, await this.people.awaitSettled(view, wait, signal), 'synced');
  }
}
