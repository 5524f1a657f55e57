import { Body, Controller, Get, HttpCode, Param, Post, Query } from '@nestjs/common';
import { ApiOkResponse, ApiTags } from '@nestjs/swagger';
import { Scopes } from '../../access/identity/scopes.js';
import { PageQuery } from '../../http/request/page.js';
import { Rejections } from '../receive/rejections.js';
import {
  DeliveriesQuery,
  DeliveryPageResponse,
  DeliveryResponse,
  RejectionPageResponse,
  RejectionResponse,
  ReplayRequest,
  ReplayResponse,
} from './deliveries.dto.js';
import { DeliveriesService, DeliveryIdPipe } from './deliveries.service.js';

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

@ApiTags('webhooks')
@Scopes('webhooks')
@Controller('v1/webhook-rejections')
export class RejectionsController {
  constructor(private readonly rejections: Rejections) {}

  /** How many requests the receiver refused, by minute and cause */
  @Get()
  async list(@Query() query: PageQuery): Promise<RejectionPageResponse> {
    const { items, nextCursor } = await this.rejections.list(query.limit, query.cursor);
    return { items: items.map((row) => new RejectionResponse(row)), nextCursor };
  }
}
