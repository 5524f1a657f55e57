import { Controller, Get, Res } from '@nestjs/common';
import { ApiOkResponse, ApiServiceUnavailableResponse, ApiTags } from '@nestjs/swagger';
import type { FastifyReply } from 'fastify';
import { Public } from '../access/identity/scopes.js';
import { RouteOptions } from '../http/request/route-options.js';
import { HealthChecks, type HealthReport } from './health-checks.js';
import { Liveness } from './liveness.js';

@ApiTags('operations')
@Public()
@Controller('health')
export class HealthController {
  constructor(
    private readonly checks: HealthChecks,
    private readonly liveness: Liveness,
  ) {}

  /**
   * The process runs
   *
   * @remarks 503 where only a restart helps: its own connections to PostgreSQL are of no use, and a new one is.
   */
  @Get('live')
  @RouteOptions({ hot: true })
  @ApiOkResponse()
  @ApiServiceUnavailableResponse()
  live(@Res({ passthrough: true }) reply: FastifyReply): { status: 'ok' | 'stuck' } {
    if (this.liveness.isAlive()) return { status: 'ok' };
    reply.code(503);
    return { status: 'stuck' };
  }

  /**
   * The service takes requests
   *
   * @remarks 200, also when something is degraded; 503 when nothing can be kept, or on shutdown.
   */
  @Get('ready')
  @RouteOptions({ hot: true })
  @ApiOkResponse()
  @ApiServiceUnavailableResponse()
  async ready(@Res({ passthrough: true }) reply: FastifyReply): Promise<HealthReport> {
    const report = await this.checks.report();
    reply.header('cache-control', 'no-store');
    if (report.status === 'down' || report.status === 'stopping') reply.code(503);
    return report;
  }
}
