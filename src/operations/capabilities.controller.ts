import { Controller, Get } from '@nestjs/common';
import { ApiTags } from '@nestjs/swagger';
import { AnyKey } from '../access/identity/scopes.js';
import { Env } from '../config/env.js';
import { capabilitiesOf } from '../platform/contract/capabilities.js';
import { Contract } from '../platform/contract/contract.js';
import { CapabilityPageResponse } from './capabilities.dto.js';

@ApiTags('operations')
@AnyKey()
@Controller('v1/capabilities')
export class CapabilitiesController {
  constructor(
    private readonly contract: Contract,
    private readonly env: Env,
  ) {}

  /** What the service can do with its settings, and what the rest lacks */
  @Get()
  list(): CapabilityPageResponse {
    return { items: capabilitiesOf(this.contract, this.env), nextCursor: null };
  }
}
