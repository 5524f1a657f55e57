import { Injectable } from '@nestjs/common';
import { DueProcessor } from '../../due-rows/due-loop.js';
import { WEBHOOK_INBOX_QUEUE } from '../../queue/backend/queue-names.js';
import { QueueStore } from '../../queue/backend/queue-store.js';
import { Poller } from '../../queue/notifier/poller.js';
import { InboxLoop } from './inbox-loop.js';

/** Empties the inbox when the receiver notifies, and when a delivery is due. */
@Injectable()
export class InboxProcessor extends DueProcessor {
  constructor(store: QueueStore, poller: Poller, loop: InboxLoop) {
    super(WEBHOOK_INBOX_QUEUE, store, poller, [loop]);
  }
}
