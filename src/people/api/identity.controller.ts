import { Body, Controller, HttpCode, Post } from '@nestjs/common';
import { ApiTags } from '@nestjs/swagger';
import { StepUp } from '../../access/identity/step-up.js';
import { IdentityService } from './identity.service.js';
import { ChangesPerson, ExternalIdParam } from './people.controller.js';
import { MergeRequest, RenameRequest } from './people.dto.js';
import type { PersonResponse } from './person-view.js';

/** Changes of the ids of people. */
@ApiTags('people')
@Controller('v1')
export class IdentityController {
  constructor(private readonly identities: IdentityService) {}

  /** Rename a provider: only its external id changes */
  @Post('providers/:externalId/rename')
  @HttpCode(200)
  @ChangesPerson('Renamed, now or before')
  async renameProvider(@ExternalIdParam() externalId: string, @Body() dto: RenameRequest): Promise<PersonResponse> {
    return this.identities.rename({ kind: 'provider', externalId }, dto.externalId);
  }

  /** Rename a client: only its external id changes */
  @Post('clients/:externalId/rename')
  @HttpCode(200)
  @ChangesPerson('Renamed, now or before')
  async renameClient(@ExternalIdParam() externalId: string, @Body() dto: RenameRequest): Promise<PersonResponse> {
    return this.identities.rename({ kind: 'client', externalId }, dto.externalId);
  }

  /**
   * Merge a client into another one; cannot be undone
   *
   * @remarks The other client keeps its name, email and providers. What was stated about the merged one is gone. Both users
   *   on the platform stay until the other client is deleted, which deletes both.
   */
  @Post('clients/:externalId/merge')
  @StepUp()
  @HttpCode(200)
  @ChangesPerson('The other client; merged, now or before')
  async merge(@ExternalIdParam() externalId: string, @Body() dto: MergeRequest): Promise<PersonResponse> {
    return this.identities.merge(externalId, dto.into);
  }
}
