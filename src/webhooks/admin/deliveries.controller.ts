import { Body, Controller, Get, HttpCode, Param, Post, Query } from '@nestjs/common';
import { ApiAcceptedResponse, ApiOkResponse, ApiOperation, ApiTags } from '@nestjs/swagger';
import { Scopes } from '../../access/identity/scopes.js';
import { DeliveriesQuery, DeliveryAnswer, DeliveryPage, ReplayAnswer, ReplayBody } from './deliveries.dto.js';
import { DeliveriesService } from './deliveries.service.js';
import { DeliveryIdPipe } from './delivery-id.pipe.js';

/** The inbox, for operators. What a delivery said is never shown: it is personal. */
@ApiTags('webhooks')
@Scopes('webhooks')
@Controller('v1/webhook-deliveries')
export class DeliveriesController {
  constructor(private readonly deliveries: DeliveriesService) {}

  @Get()
  @ApiOperation({ summary: 'Deliveries, the newest first' })
  @ApiOkResponse({ type: DeliveryPage })
  async list(@Query() query: DeliveriesQuery): Promise<DeliveryPage> {
    const { items, nextCursor } = await this.deliveries.list(query.state, query.limit, query.cursor);
    return { items: items.map((row) => new DeliveryAnswer(row)), nextCursor };
  }

  @Get(':id')
  @ApiOperation({ summary: 'One delivery' })
  @ApiOkResponse({ type: DeliveryAnswer })
  async get(@Param('id', DeliveryIdPipe) id: string): Promise<DeliveryAnswer> {
    return new DeliveryAnswer(await this.deliveries.find(id));
  }

  @Post(':id/replay')
  @ApiOperation({ summary: 'Has a delivery processed again, whatever became of it' })
  @HttpCode(202)
  @ApiAcceptedResponse({ type: DeliveryAnswer })
  async replay(@Param('id', DeliveryIdPipe) id: string): Promise<DeliveryAnswer> {
    return new DeliveryAnswer(await this.deliveries.replay(id));
  }

  @Post(':id/dismiss')
  @ApiOperation({
    summary: 'Ends the wait of a delivery that was not understood',
    description: 'Health is degraded while any waits. It is ignored from now on, and dropped when it is old.',
  })
  @HttpCode(200)
  @ApiOkResponse({ type: DeliveryAnswer })
  async dismiss(@Param('id', DeliveryIdPipe) id: string): Promise<DeliveryAnswer> {
    return new DeliveryAnswer(await this.deliveries.dismiss(id));
  }

  @Post('replay')
  @ApiOperation({
    summary: 'Has a selection of deliveries processed again',
    description: 'It is counted first (`dryRun`); then exactly that many are processed.',
  })
  @HttpCode(200)
  @ApiOkResponse({ type: ReplayAnswer })
  async replayAll(@Body() { dryRun, plan, ...selection }: ReplayBody): Promise<ReplayAnswer> {
    if (dryRun || !plan) return new ReplayAnswer(true, await this.deliveries.plan(selection));
    await this.deliveries.replayAll(selection, plan);
    return new ReplayAnswer(false, plan);
  }
}
