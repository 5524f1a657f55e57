import { Body, Controller, Get, HttpCode, Param, Post, Query } from '@nestjs/common';
import { ApiOkResponse, ApiTags } from '@nestjs/swagger';
import { Scopes } from '../../access/identity/scopes.js';
import {
  DeliveriesQuery,
  DeliveryPageResponse,
  DeliveryResponse,
  ReplayRequest,
  ReplayResponse,
} from './deliveries.dto.js';
import { DeliveriesService } from './deliveries.service.js';
import { DeliveryIdPipe } from './delivery-id.pipe.js';

/** The inbox, for operators. What a delivery said is never shown: it is personal. */
@ApiTags('webhooks')
@Scopes('webhooks')
@Controller('v1/webhook-deliveries')
export class DeliveriesController {
  constructor(private readonly deliveries: DeliveriesService) {}

  /** Deliveries, the newest first */
  @Get()
  async list(@Query() query: DeliveriesQuery): Promise<DeliveryPageResponse> {
    const { items, nextCursor } = await this.deliveries.list(query.state, query.limit, query.cursor);
    return { items: items.map((row) => new DeliveryResponse(row)), nextCursor };
  }

  /** One delivery */
  @Get(':id')
  async get(@Param('id', DeliveryIdPipe) id: string): Promise<DeliveryResponse> {
    return new DeliveryResponse(await this.deliveries.find(id));
  }

  /** Has a delivery processed again, whatever became of it */
  @Post(':id/replay')
  @HttpCode(202)
  async replay(@Param('id', DeliveryIdPipe) id: string): Promise<DeliveryResponse> {
    return new DeliveryResponse(await this.deliveries.replay(id));
  }

  /**
   * Ends the wait of a delivery that was not understood
   *
   * @remarks Health is degraded while any waits. It is ignored from now on, and dropped when it is old.
   */
  @Post(':id/dismiss')
  @HttpCode(200)
  @ApiOkResponse({ type: DeliveryResponse })
  async dismiss(@Param('id', DeliveryIdPipe) id: string): Promise<DeliveryResponse> {
    return new DeliveryResponse(await this.deliveries.dismiss(id));
  }

  /**
   * Has a selection of deliveries processed again
   *
   * @remarks It is counted first (`dryRun`); then exactly that many are processed.
   */
  @Post('replay')
  @HttpCode(200)
  @ApiOkResponse({ type: ReplayResponse })
  async replayAll(@Body() { dryRun, plan, ...selection }: ReplayRequest): Promise<ReplayResponse> {
    if (dryRun || !plan) return new ReplayResponse(true, await this.deliveries.plan(selection));
    await this.deliveries.replayAll(selection, plan);
    return new ReplayResponse(false, plan);
  }
}
