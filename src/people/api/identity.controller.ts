import { Body, Controller, HttpCode, Post } from '@nestjs/common';
import { ApiTags } from '@nestjs/swagger';
import { Problems } from '../../http/problem/described-problems.js';
import { IdentityService } from './identity.service.js';
import { ChangesPerson, ExternalIdParam } from './people.controller.js';
import { MergeRequest, RenameRequest, UnmergeRequest } from './people.dto.js';
import type { PersonResponse } from './person-view.js';

/** Changes of the id of a provider. */
@ApiTags('people')
@Controller('v1/providers')
@Problems({ 404: ['provider-not-found'] })
export class ProviderIdentityController {
  constructor(private readonly identities: IdentityService) {}

  /** Gives a provider another id, and keeps everything stored and mirrored */
  @Post(':externalId/rename')
  @HttpCode(200)
  @ChangesPerson('Renamed, now or before')
  @Problems({ 409: ['id-taken'] })
  async rename(
    @ExternalIdParam() externalId: string,
    @Body() { externalId: newId }: RenameRequest,
  ): Promise<PersonResponse> {
    return this.identities.rename({ kind: 'provider', externalId }, newId);
  }
}

/** Changes of the ids of clients. */
@ApiTags('people')
@Controller('v1/clients')
@Problems({ 404: ['client-not-found'] })
export class ClientIdentityController {
  constructor(private readonly identities: IdentityService) {}

  /** Gives a client another id, and keeps everything stored and mirrored */
  @Post(':externalId/rename')
  @HttpCode(200)
  @ChangesPerson('Renamed, now or before')
  @Problems({ 409: ['id-taken'] })
  async rename(
    @ExternalIdParam() externalId: string,
    @Body() { externalId: newId }: RenameRequest,
  ): Promise<PersonResponse> {
    return this.identities.rename({ kind: 'client', externalId }, newId);
  }

  /** Merges a client into another one, which then shows the sessions of both */
  @Post(':externalId/merge')
  @HttpCode(200)
  @ChangesPerson('The other client; merged, now or before')
  @Problems({
    409: ['call-under-way', 'client-deleted', 'session-requested'],
    422: ['same-client', 'unknown-client'],
  })
  async merge(
    @ExternalIdParam() externalId: string,
    @Body() { into, deletePlatformUser = false }: MergeRequest,
  ): Promise<PersonResponse> {
    return this.identities.merge(externalId, into, deletePlatformUser);
  }

  /** Undoes a merge into this client while the other account is kept */
  @Post(':externalId/unmerge')
  @HttpCode(200)
  @ChangesPerson('The restored client')
  @Problems({ 409: ['account-deleted', 'client-deleted'], 422: ['unknown-client'] })
  async unmerge(
    @ExternalIdParam() externalId: string,
    @Body() { externalId: mergedId }: UnmergeRequest,
  ): Promise<PersonResponse> {
    return this.identities.unmerge(externalId, mergedId);
  }
}
