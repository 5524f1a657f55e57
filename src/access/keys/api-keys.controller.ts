import { Body, Controller, Delete, Get, HttpCode, Post, Query } from '@nestjs/common';
import { ApiTags } from '@nestjs/swagger';
import { PageQuery } from '../../http/request/page.js';
import { UuidParam } from '../../http/request/uuid-param.js';
import { Caller, type Principal, Scopes } from '../identity/scopes.js';
import { ApiKeyPageResponse, ApiKeyResponse, NewApiKeyRequest, NewApiKeyResponse } from './api-keys.dto.js';
import { ApiKeys } from './api-keys.js';

@ApiTags('access')
@Scopes('admin')
@Controller('v1/api-keys')
export class ApiKeysController {
  constructor(private readonly keys: ApiKeys) {}

  /** Makes a key; it is shown this once */
  @Post()
  async create(@Body() body: NewApiKeyRequest, @Caller() caller: Principal): Promise<NewApiKeyResponse> {
    const { row, key } = await this.keys.create(body.name, body.scopes, caller);
    return new NewApiKeyResponse(row, key);
  }

  /** All keys, revoked ones too, the oldest first */
  @Get()
  async list(@Query() query: PageQuery): Promise<ApiKeyPageResponse> {
    const { items, nextCursor } = await this.keys.list(query.limit, query.cursor);
    return { items: items.map((row) => new ApiKeyResponse(row)), nextCursor };
  }

  /** Revokes a key, at once; revoking it again changes nothing */
  @Delete(':id')
  @HttpCode(204)
  revoke(@UuidParam() id: string, @Caller() caller: Principal): Promise<void> {
    return this.keys.revoke(id, caller);
  }
}
