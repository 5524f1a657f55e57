import { Body, Controller, Get, HttpCode, Post } from '@nestjs/common';
import { ApiTags } from '@nestjs/swagger';
import { Scopes } from '../../access/identity/scopes.js';
import { Env } from '../../config/env.js';
import { Problem } from '../../http/problem/problem.js';
import { requireCapability } from '../../platform/contract/capabilities.js';
import { Contract } from '../../platform/contract/contract.js';
import { SessionReader } from '../read/session-reader.js';
import { RefreshRequest } from '../read/sessions.dto.js';
import { RefreshNotifier } from '../refresh/refresh-notifier.js';
import { type PendingRefreshes, WantedRefreshes } from '../refresh/wanted-refreshes.repository.js';

/** Sessions looked up on demand, for webhooks that never came. */
@ApiTags('sessions')
@Controller('v1/sessions/refreshes')
export class RefreshesController {
  constructor(
    private readonly env: Env,
    private readonly contract: Contract,
    private readonly reader: SessionReader,
    private readonly wanted: WantedRefreshes,
    private readonly notifier: RefreshNotifier,
  ) {}

  /** Makes sessions due; they are fetched one after the other */
  @Post()
  @HttpCode(202)
  @Scopes('sessions:write')
  async begin(@Body() { since, session }: RefreshRequest): Promise<{ sessions: number }> {
    if ((since === undefined) === (session === undefined)) {
      throw new Problem(400, 'validation', 'Name either since or session.', { pointer: '' });
    }
    requireCapability('session-read', this.contract, this.env);
    const sessions =
      session === undefined
        ? await this.wanted.wantSince(new Date(since ?? 0))
        : await this.wanted.wantOne((await this.reader.find(session)).id);
    this.notifier.notify();
    return { sessions };
  }

  /** How many sessions still wait to be fetched */
  @Get()
  @Scopes('sessions:read')
  async pending(): Promise<PendingRefreshes> {
    return this.wanted.countWanted();
  }
}
