import { Global, Module } from '@nestjs/common';
import { PlatformModule } from '../platform/platform.module.js';
import { DeliveriesController } from './admin/deliveries.controller.js';
import { DeliveriesService } from './admin/deliveries.service.js';
import { EventHandlers } from './process/event-handlers.js';
import { InboxProcessor } from './process/inbox.processor.js';
import { InboxRepository } from './process/inbox.repository.js';
import { InboxLoop } from './process/inbox-loop.js';
import { InboxAppender } from './receive/inbox-appender.js';
import { InboxWriterRepository } from './receive/inbox-writer.repository.js';
import { ReceiverHealth } from './receive/receiver-health.js';
import { WebhooksController } from './webhooks.controller.js';

/** From the platform's POST into the inbox, the inbox for operators, and the registry in which features put handlers. */
@Global()
@Module({
  controllers: [DeliveriesController, WebhooksController],
  providers: [DeliveriesService, EventHandlers, InboxAppender, InboxWriterRepository, ReceiverHealth],
  exports: [DeliveriesService, EventHandlers],
})
export class WebhooksModule {}

/** From the inbox to the handlers; only in worker processes. */
@Module({ imports: [PlatformModule], providers: [InboxRepository, InboxLoop, InboxProcessor] })
export class WebhooksWorkerModule {}
