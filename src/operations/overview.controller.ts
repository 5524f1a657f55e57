import { Controller, Get } from '@nestjs/common';
import { ApiTags } from '@nestjs/swagger';
import { Scopes } from '../access/identity/scopes.js';
import { Unaudited } from '../audit/audit.interceptor.js';
import { OverviewResponse } from './overview/overview.dto.js';
import { Overview } from './overview.js';

@ApiTags('operations')
@Controller('v1/overview')
@Scopes('operations')
export class OverviewController {
  constructor(private readonly overview: Overview) {}

  /**
   * Get the overview for operators
   *
   * @remarks It is less than two seconds old. A figure is null if PostgreSQL does not return it in time.
   */
  @Get()
  @Unaudited()
  read(): Promise<OverviewResponse> {
    return this.overview.read();
  }
}
