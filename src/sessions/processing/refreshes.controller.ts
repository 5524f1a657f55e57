import { Body, Controller, Get, HttpCode, Post } from '@nestjs/common';
import { ApiTags } from '@nestjs/swagger';
import { Scopes } from '../../access/identity/scopes.js';
import { RefreshRequest } from '../read/sessions.dto.js';
import type { PendingRefreshes } from '../refresh/wanted-refreshes.repository.js';
import { Refreshes } from './refreshes.js';

/** Sessions looked up on demand, for webhooks that never came. */
@ApiTags('sessions')
@Controller('v1/sessions/refreshes')
export class RefreshesController {
  constructor(private readonly refreshes: Refreshes) {}

  /** Makes sessions due; they are fetched one after the other */
  @Post()
  @HttpCode(202)
  @Scopes('sessions:write')
  async begin(@Body() dto: RefreshRequest): Promise<{ sessions: number }> {
    return { sessions: await this.refreshes.begin(dto) };
  }

  /** How many sessions still wait to be fetched */
  @Get()
  @Scopes('sessions:read')
  async pending(): Promise<PendingRefreshes> {
    return this.refreshes.pending();
  }
}
