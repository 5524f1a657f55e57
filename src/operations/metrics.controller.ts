import { Controller, Get, Res } from '@nestjs/common';
import { ApiOkResponse, ApiProduces, ApiTags } from '@nestjs/swagger';
import type { FastifyReply } from 'fastify';
import { Scopes } from '../access/identity/scopes.js';
import { RouteOptions } from '../http/request/route-options.js';
import { Metrics } from '../http/server/metrics.js';

@ApiTags('operations')
@Scopes('operations')
@Controller('metrics')
export class MetricsController {
  constructor(private readonly metrics: Metrics) {}

  /** All metrics in the text format of Prometheus */
  @Get()
  @RouteOptions({ hot: true })
  @ApiProduces('text/plain')
  @ApiOkResponse({ schema: { type: 'string' } })
  read(@Res({ passthrough: true }) reply: FastifyReply): Promise<string> {
    reply.header('content-type', this.metrics.registry.contentType);
    return this.metrics.registry.metrics();
  }
}
