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

/** The inbox for operators. The content of a delivery is personal, so it is never shown. */
@ApiTags('webhooks')
@Scopes('webhooks')
@Controller('v1')
export class DeliveriesController {
  constructor(private readonly deliveries: DeliveriesService) {}

  /** List deliveries, newest first */
  @Get('webhook-deliveries')
  list(@Query() query: DeliveriesQuery): Promise<DeliveryPageResponse> {
    return this.deliveries.list(query);
  }

  /** Get a delivery */
  @Get('webhook-deliveries/:id')
  get(@Param('id') id: string): Promise<DeliveryResponse> {
    return this.deliveries.find(id);
  }

  /** Replay a delivery in any state */
  @Post('webhook-deliveries/:id/replay')
  @HttpCode(202)
  replay(@Param('id') id: string): Promise<DeliveryResponse> {
    return this.deliveries.replay(id);
  }

  /**
   * Dismiss a delivery that was not understood
   *
   * @remarks Health is degraded while such deliveries wait. A dismissed one is deleted when its retention period ends.
   */
  @Post('webhook-deliveries/:id/dismiss')
  @HttpCode(200)
  @ApiOkResponse({ type: DeliveryResponse })
  dismiss(@Param('id') id: string): Promise<DeliveryResponse> {
    return this.deliveries.dismiss(id);
  }

  /**
   * Replay a selection of deliveries
   *
   * @remarks Count the selection with `dryRun` first, then send the returned plan: it replays them if their number is still the same.
   */
  @Post('webhook-deliveries/replay')
  @HttpCode(200)
  @ApiOkResponse({ type: ReplayResponse })
  replayAll(@Body() request: ReplayRequest): Promise<ReplayResponse> {
    return this.deliveries.replayAll(request);
  }
}
