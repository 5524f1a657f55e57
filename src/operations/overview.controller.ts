import { Controller, Get, Headers, Res } from '@nestjs/common';
import { ApiExtraModels, ApiOkResponse, ApiTags, getSchemaPath } from '@nestjs/swagger';
import type { FastifyReply } from 'fastify';
import { EVENT_STREAM, EventStreams, prefersStream } from '../access/guard/event-streams.js';
import { Caller, type Principal, Scopes } from '../access/identity/scopes.js';
import { Unaudited } from '../audit/audit.interceptor.js';
import { ClientDisconnect } from '../http/request/waiting.js';
import { OverviewResponse } from './overview/overview.dto.js';
import { Overview } from './overview.js';

@ApiTags('operations')
@Controller('v1/overview')
@Scopes('operations')
export class OverviewController {
  constructor(
    private readonly overview: Overview,
    private readonly streams: EventStreams,
  ) {}

  /**
   * Get the overview for operators: once, or as a stream
   *
   * @remarks The stream sends an event `overview` immediately and after each change. A figure is null if PostgreSQL does
   * not return it in time.
   */
  @Get()
  @Unaudited()
  @ApiExtraModels(OverviewResponse)
  @ApiOkResponse({
    description: 'Once, or a stream for Accept: text/event-stream',
    content: { 'application/json': { schema: { $ref: getSchemaPath(OverviewResponse) } }, ...EVENT_STREAM },
  })
  async read(
    @Headers('accept') accept: string | undefined,
    @ClientDisconnect() signal: AbortSignal,
    @Caller() caller: Principal,
    @Res() reply: FastifyReply,
  ): Promise<void> {
    if (prefersStream(accept)) {
      await this.streams.send(reply, caller, () => this.overview.stream(signal));
    } else await reply.send(await this.overview.read());
  }
}
