import { Controller, Get } from '@nestjs/common';
import { ApiOkResponse, ApiOperation, ApiProperty, ApiTags } from '@nestjs/swagger';
import { AnyKey } from '../access/identity/scopes.js';
import { Env } from '../config/env.js';
import { CAPABILITY_NAMES, type CapabilityName, capabilitiesOf } from '../platform/contract/capabilities.js';
import { Contract } from '../platform/contract/contract.js';

export class CapabilityAnswer {
  @ApiProperty({ enum: CAPABILITY_NAMES })
  name!: CapabilityName;

  @ApiProperty({ type: Boolean })
  on!: boolean;

  @ApiProperty({ type: String, isArray: true, description: 'Settings to make before it can be on' })
  missing!: string[];
}

export class CapabilityPage {
  @ApiProperty({ type: CapabilityAnswer, isArray: true })
  items!: CapabilityAnswer[];

  @ApiProperty({ type: String, nullable: true })
  nextCursor!: null;
}

@ApiTags('operations')
@AnyKey()
@Controller('v1/capabilities')
export class CapabilitiesController {
  constructor(
    private readonly contract: Contract,
    private readonly env: Env,
  ) {}

  @Get()
  @ApiOperation({ summary: 'What the service can do with its settings, and what the rest lacks' })
  @ApiOkResponse({ type: CapabilityPage })
  list(): CapabilityPage {
    return { items: capabilitiesOf(this.contract, this.env), nextCursor: null };
  }
}
