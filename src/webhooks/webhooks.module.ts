import { Global, Module } from '@nestjs/common';
import { PlatformModule } from '../platform/platform.module.js';
import { DeliveriesController } from './admin/deliveries.controller.js';
import { DeliveriesService } from './admin/deliveries.service.js';
import { EventHandlers } from './process/event-handlers.js';
import { InboxRepository } from './process/inbox.repository.js';
import { WebhooksProcessor } from './process/webhooks.processor.js';
import { InboxWriter } from './receive/inbox.writer.js';
import { ReceiverHealth } from './receive/receiver-health.js';
import { WebhooksController } from './webhooks.controller.js';

/** From the platform's POST into the inbox, the inbox for operators, and the registry in which features put handlers. */
@Global()
@Module({
  imports: [PlatformModule],
  controllers: [DeliveriesController, WebhooksController],
  providers: [DeliveriesService, EventHandlers, InboxWriter, ReceiverHealth],
  exports: [DeliveriesService, EventHandlers],
})
export class WebhooksModule {}

/** From the inbox to the handlers; only in worker processes. */
@Module({ imports: [PlatformModule], providers: [InboxRepository, WebhooksProcessor] })
export class WebhooksWorkerModule {}
