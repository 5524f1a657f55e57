import { Module } from '@nestjs/common';
import { DiscoveryModule } from '@nestjs/core';
import { DeliveriesController } from './deliveries.controller.js';
import { DeliveriesRepository } from './deliveries.repository.js';
import { DeliveriesService } from './deliveries.service.js';
import { EventHandlers } from './event-handlers.js';
import { InboxProcessor } from './inbox.processor.js';
import { InboxRepository } from './inbox.repository.js';
import { InboxBatch } from './inbox-batch.js';
import { InboxDrain } from './inbox-drain.js';
import { IntakeRepository } from './intake.repository.js';
import { NotUnderstoodHealth } from './not-understood-health.js';
import { Receiver } from './receiver.js';
import { ReceiverRoute } from './receiver.route.js';
import { RejectionsController } from './rejections.controller.js';
import { Rejections } from './rejections.js';
import { RejectionsRepository } from './rejections.repository.js';
import { SignaturesHealth } from './signatures-health.js';

/** From the platform's POST into the inbox, and the inbox as operators see it. */
@Module({
  controllers: [DeliveriesController, RejectionsController],
  providers: [
    DeliveriesRepository,
    DeliveriesService,
    IntakeRepository,
    NotUnderstoodHealth,
    Receiver,
    ReceiverRoute,
    Rejections,
    RejectionsRepository,
    SignaturesHealth,
  ],
})
export class WebhooksModule {}

/** From the inbox to the handlers of the features, in worker processes only. It knows no feature: they are discovered. */
@Module({
  imports: [DiscoveryModule],
  providers: [EventHandlers, InboxRepository, InboxBatch, InboxDrain, InboxProcessor],
})
export class WebhooksWorkerModule {}
