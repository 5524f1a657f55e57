import { Processor } from '@nestjs/bullmq';
import { WEBHOOK_INBOX_QUEUE } from '../../queue/backend/queue-names.js';
import { DueProcessor } from '../../queue/due-rows/due-loop.js';
import { Poller } from '../../queue/notifier/poller.js';
import { InboxLoop } from './inbox-loop.js';

const POLL_MS = 2_000;

/** Has the inbox emptied when the receiver has notified its queue, and at intervals. */
@Processor(WEBHOOK_INBOX_QUEUE, { concurrency: 1 })
export class InboxProcessor extends DueProcessor {
  constructor(poller: Poller, loop: InboxLoop) {
    super(poller, { name: 'webhook-inbox', everyMs: POLL_MS }, [loop]);
  }
}
