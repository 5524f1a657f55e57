import { Module } from '@nestjs/common';
import { Attempts } from './push/attempts.repository.js';
import { Endpoint } from './push/endpoint.js';
import { PushesProcessor } from './push/pushes.processor.js';
import { PushesRepository } from './push/pushes.repository.js';
import { SubscriptionSeal } from './push/subscription-row.js';
import { SubscriptionView } from './subscription-view.js';
import { SubscriptionsController } from './subscriptions.controller.js';
import { Subscriptions } from './subscriptions.js';
import { SubscriptionsHealth } from './subscriptions-health.js';

/** The events of the feed, pushed to the EHR. */
@Module({
  controllers: [SubscriptionsController],
  providers: [Subscriptions, SubscriptionSeal, SubscriptionView, Attempts, Endpoint, SubscriptionsHealth],
  exports: [SubscriptionSeal, Attempts, Endpoint],
})
export class SubscriptionsModule {}

/** Providers of worker processes only. */
@Module({ imports: [SubscriptionsModule], providers: [PushesRepository, PushesProcessor] })
export class SubscriptionsWorkerModule {}
