import { Controller, Get, Res } from '@nestjs/common';
import { ApiExtraModels, ApiOkResponse, ApiProduces, ApiServiceUnavailableResponse, ApiTags } from '@nestjs/swagger';
import type { FastifyReply } from 'fastify';
import { Public, Scopes } from '../access/identity/scopes.js';
import { Unaudited } from '../audit/audit.interceptor.js';
import { Env } from '../config/env.js';
import { RouteOptions } from '../http/request/route-options.js';
import { Metrics } from '../monitoring/metrics.js';
import { capabilitiesOf } from '../platform/contract/capabilities.js';
import { Contract } from '../platform/contract/contract.js';
import { WORDS } from '../words/words.js';
import { HealthChecks } from './health-checks.js';
import { CapabilityPageResponse } from './overview/capabilities.dto.js';
import { HealthReportResponse, HealthResponse, LivenessResponse } from './overview/health.dto.js';
import { WORDS_SCHEMA, WordResponse } from './overview/words.dto.js';

@ApiTags('operations')
@ApiExtraModels(HealthResponse, WordResponse)
@Controller()
export class OperationsController {
  constructor(
    private readonly contract: Contract,
    private readonly env: Env,
    private readonly metrics: Metrics,
    private readonly checks: HealthChecks,
  ) {}

  /** List the capabilities and the settings that the missing ones need */
  @Get('v1/capabilities')
  @Scopes()
  @Unaudited()
  capabilities(): CapabilityPageResponse {
    return { items: capabilitiesOf(this.contract, this.env), nextCursor: null };
  }

  /** Get the words for states and codes, by vocabulary */
  @Get('v1/words')
  @Scopes()
  @Unaudited()
  @ApiOkResponse({ schema: WORDS_SCHEMA })
  words(): typeof WORDS {
    return WORDS;
  }

  /** Get all metrics in the text format of Prometheus */
  @Get('metrics')
  @Scopes('operations')
  @Unaudited()
  @RouteOptions({ hot: true, unlimited: true })
  @ApiProduces('text/plain')
  @ApiOkResponse({ schema: { type: 'string' } })
  readMetrics(@Res({ passthrough: true }) reply: FastifyReply): Promise<string> {
    reply.header('content-type', this.metrics.registry.contentType);
    return this.metrics.registry.metrics();
  }

  /** Report that the process runs */
  @Get('health/live')
  @Public()
  @RouteOptions({ hot: true, unlimited: true })
  live(): LivenessResponse {
    return { status: 'ok' };
  }

  /**
   * Report health by cause
   *
   * @remarks 503 if nothing can be stored, and on shutdown; otherwise 200, also while something is degraded or awaits a decision.
   * `causes` names each fault once, with the parts that follow from it.
   */
  @Get('health/ready')
  @Public()
  @RouteOptions({ hot: true, unlimited: true })
  @ApiOkResponse({ type: HealthReportResponse })
  @ApiServiceUnavailableResponse({ type: HealthReportResponse })
  async ready(@Res({ passthrough: true }) reply: FastifyReply): Promise<HealthReportResponse> {
    const report = await this.checks.report();
    if (report.status === 'down' || report.status === 'stopping') reply.code(503);
    return report;
  }
}
