import { Body, Controller, Delete, Get, HttpCode, Patch, Post, Query } from '@nestjs/common';
import { ApiOkResponse, ApiTags } from '@nestjs/swagger';
import { Scopes } from '../access/identity/scopes.js';
import { StepUp } from '../access/identity/step-up.js';
import { Unaudited } from '../audit/audit.interceptor.js';
import { PageQuery } from '../http/request/page.js';
import { UuidParam } from '../http/request/uuid-param.js';
import {
  AttemptPageResponse,
  ChangeSubscriptionRequest,
  NewSubscriptionRequest,
  NewSubscriptionResponse,
  PushAnswerResponse,
  SkipRequest,
  SubscriptionPageResponse,
  SubscriptionResponse,
} from './subscriptions.dto.js';
import { Subscriptions } from './subscriptions.js';

/** Endpoints of the EHR to which the events of the feed are pushed. */
@ApiTags('subscriptions')
@Scopes('subscriptions')
@Controller('v1/subscriptions')
export class SubscriptionsController {
  constructor(private readonly subscriptions: Subscriptions) {}

  /**
   * Create a subscription, which pushes events to an endpoint in order
   *
   * @remarks The answer shows the secret only this once, so no `Idempotency-Key` is taken. Each event is sent as in Standard
   * Webhooks until a 2xx comes within 15 seconds, one at a time: a throughput of one event per round trip. Failed attempts
   * are repeated after 5 s, 30 s, 2 min, 10 min, then hourly; a longer `Retry-After`, up to an hour, is honored. A 410, or
   * five days without a success, pauses the subscription. At most 20 exist at a time.
   */
  @Post()
  @StepUp()
  create(@Body() body: NewSubscriptionRequest): Promise<NewSubscriptionResponse> {
    return this.subscriptions.create(body);
  }

  /** List subscriptions, oldest first */
  @Get()
  @Unaudited()
  list(@Query() { limit, cursor }: PageQuery): Promise<SubscriptionPageResponse> {
    return this.subscriptions.list(limit, cursor);
  }

  /** Get a subscription with its last answer and waiting events */
  @Get(':id')
  get(@UuidParam() id: string): Promise<SubscriptionResponse> {
    return this.subscriptions.find(id);
  }

  /** List the last 50 attempts, newest first */
  @Get(':id/attempts')
  attempts(@UuidParam() id: string): Promise<AttemptPageResponse> {
    return this.subscriptions.attempts(id);
  }

  /** Update or pause a subscription, or move its position in the feed */
  @Patch(':id')
  @StepUp((body) => ['url', 'types', 'headers', 'after'].some((field) => body[field] !== undefined))
  change(@UuidParam() id: string, @Body() body: ChangeSubscriptionRequest): Promise<SubscriptionResponse> {
    return this.subscriptions.change(id, body);
  }

  /**
   * Create a new secret, which is shown only once
   *
   * @remarks The former secret also signs for 24 hours: `webhook-signature` then has several signatures.
   */
  @Post(':id/rotate-secret')
  @StepUp()
  @HttpCode(200)
  @ApiOkResponse({ type: NewSubscriptionResponse })
  rotateSecret(@UuidParam() id: string): Promise<NewSubscriptionResponse> {
    return this.subscriptions.rotateSecret(id);
  }

  /**
   * Send a `subscription.test` once, now, and return the response
   *
   * @remarks It changes nothing about the subscription, and works while it is paused.
   */
  @Post(':id/test')
  @HttpCode(200)
  @ApiOkResponse({ type: PushAnswerResponse })
  test(@UuidParam() id: string): Promise<PushAnswerResponse> {
    return this.subscriptions.test(id);
  }

  /**
   * Skip the next event, which the endpoint cannot process
   *
   * @remarks 409 `not-next` unless `cursor` names the next event, so a repeated request does not skip another event.
   */
  @Post(':id/skip')
  @HttpCode(200)
  @ApiOkResponse({ type: SubscriptionResponse })
  skip(@UuidParam() id: string, @Body() { cursor }: SkipRequest): Promise<SubscriptionResponse> {
    return this.subscriptions.skip(id, cursor);
  }

  /** Delete a subscription; an event in delivery may still arrive */
  @Delete(':id')
  @HttpCode(204)
  remove(@UuidParam() id: string): Promise<void> {
    return this.subscriptions.remove(id);
  }
}
