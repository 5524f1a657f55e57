import { Module } from '@nestjs/common';
import { DiscoveryModule } from '@nestjs/core';
import { PlatformModule } from '../platform/platform.module.js';
import { DeliveriesController } from './admin/deliveries.controller.js';
import { DeliveriesService } from './admin/deliveries.service.js';
import { EventHandlers } from './process/event-handlers.js';
import { InboxProcessor } from './process/inbox.processor.js';
import { InboxRepository } from './process/inbox.repository.js';
import { InboxLoop } from './process/inbox-loop.js';
import { InboxAppender } from './receive/inbox-appender.js';
import { InboxWriterRepository } from './receive/inbox-writer.repository.js';
import { Rejections } from './receive/rejections.js';
import { WebhooksController } from './webhooks.controller.js';

/** From the platform's POST into the inbox, and the inbox for operators. */
@Module({
  controllers: [DeliveriesController],
  // Nest must not register the route of WebhooksController.
  providers: [DeliveriesService, InboxAppender, InboxWriterRepository, Rejections, WebhooksController],
})
export class WebhooksModule {}

/** From the inbox to the handlers of the features, in worker processes only. It knows no feature: they are discovered. */
@Module({
  imports: [DiscoveryModule, PlatformModule],
  providers: [EventHandlers, InboxRepository, InboxLoop, InboxProcessor],
})
export class WebhooksWorkerModule {}
