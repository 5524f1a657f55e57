import { Processor } from '@nestjs/bullmq';
import { WEBHOOK_INBOX_QUEUE } from '../../queue/backend/queue-names.js';
import { DueProcessor } from '../../queue/due-rows/due-loop.js';
import { Poller } from '../../queue/notifier/poller.js';
import { InboxLoop } from './inbox-loop.js';

/** Empties the inbox when the receiver notifies, and when a delivery is due. */
@Processor(WEBHOOK_INBOX_QUEUE, { concurrency: 1 })
export class InboxProcessor extends DueProcessor {
  constructor(poller: Poller, loop: InboxLoop) {
    super(poller, [loop]);
  }
}
