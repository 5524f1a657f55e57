import { Body, Controller, Delete, Get, HttpCode, Post, Query } from '@nestjs/common';
import { ApiTags } from '@nestjs/swagger';
import { PageQuery } from '../../http/request/page.js';
import { UuidParam } from '../../http/request/uuid-param.js';
import { Caller, type Principal, Scopes } from '../identity/scopes.js';
import { StepUp } from '../identity/step-up.js';
import { ApiKeyPageResponse, NewApiKeyRequest, NewApiKeyResponse, RotateApiKeyRequest } from './api-keys.dto.js';
import { ApiKeysService } from './api-keys.service.js';

@ApiTags('access')
@Scopes('admin')
@Controller('v1/api-keys')
export class ApiKeysController {
  constructor(private readonly keys: ApiKeysService) {}

  /** Create a key, which is shown only once */
  @Post()
  @StepUp()
  create(@Body() body: NewApiKeyRequest, @Caller() caller: Principal): Promise<NewApiKeyResponse> {
    return this.keys.create(body, caller);
  }

  /** List all keys, including revoked ones, oldest first */
  @Get()
  list(@Query() { limit, cursor }: PageQuery): Promise<ApiKeyPageResponse> {
    return this.keys.list(limit, cursor);
  }

  /**
   * Rotate a key: create its successor
   *
   * @remarks It has the same name and scopes and is shown only once. The old key is accepted for `overlapSeconds` more.
   */
  @Post(':id/rotate')
  @StepUp()
  rotate(
    @UuidParam() id: string,
    @Body() body: RotateApiKeyRequest,
    @Caller() caller: Principal,
  ): Promise<NewApiKeyResponse> {
    return this.keys.rotate(id, body, caller);
  }

  /**
   * Revoke a key immediately; repeating it changes nothing
   *
   * @remarks Also a key with scopes that the calling key lacks, because this grants no rights.
   */
  @Delete(':id')
  @HttpCode(204)
  revoke(@UuidParam() id: string): Promise<void> {
    return this.keys.revoke(id);
  }
}
