import { Module } from '@nestjs/common';
import { Endpoint } from './push/endpoint.js';
import { PushProcessor } from './push/push.processor.js';
import { PushLoop } from './push/push-loop.js';
import { SubscriptionSeal } from './push/subscription-row.js';
import { SubscriptionView } from './subscription-view.js';
import { SubscriptionsController } from './subscriptions.controller.js';
import { Subscriptions } from './subscriptions.js';
import { SubscriptionsHealth } from './subscriptions-health.js';

/** The events of the feed, pushed to the EHR. */
@Module({
  controllers: [SubscriptionsController],
  providers: [Subscriptions, SubscriptionSeal, SubscriptionView, Endpoint, SubscriptionsHealth],
  exports: [SubscriptionSeal, Endpoint],
})
export class SubscriptionsModule {}

/** Providers of worker processes only. */
@Module({ imports: [SubscriptionsModule], providers: [PushLoop, PushProcessor] })
export class SubscriptionsWorkerModule {}
