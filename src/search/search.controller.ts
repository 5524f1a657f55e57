import { Body, Controller, HttpCode, Post } from '@nestjs/common';
import { ApiOkResponse, ApiTags } from '@nestjs/swagger';
import { Caller, type Principal, Scopes } from '../access/identity/scopes.js';
import { FindRequest, FindResponse } from './search.dto.js';
import { Search } from './search.service.js';

/** Search by an exact id or email, over everything that the caller may see. */
@ApiTags('operations')
@Controller('v1/search')
export class SearchController {
  constructor(private readonly searching: Search) {}

  /**
   * Find people, sessions, jobs, imports and deliveries by id or email
   *
   * @remarks Searches people, sessions, compliance jobs, imports and deliveries, each if the key has the scope to read
   * it: `people:read`, `sessions:read`, `compliance`, `imports`, `webhooks`. Only the whole id matches: an external id,
   * also a former one, an id of the platform, an email, an appointment, or an id of this service. Names are encrypted, so
   * they cannot be searched.
   */
  @Post()
  @HttpCode(200)
  @Scopes()
  @ApiOkResponse({ type: FindResponse })
  async find(@Body() { text }: FindRequest, @Caller() { scopes }: Principal): Promise<FindResponse> {
    return this.searching.find(text, scopes);
  }
}
