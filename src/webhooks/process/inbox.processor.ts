import { Processor } from '@nestjs/bullmq';
import { Metrics } from '../../http/server/metrics.js';
import { WEBHOOK_INBOX_QUEUE } from '../../queue/backend/queue-names.js';
import { DueProcessor } from '../../queue/due-rows/due-loop.js';
import { Poller } from '../../queue/notifier/poller.js';
import { InboxRepository } from './inbox.repository.js';
import { InboxLoop } from './inbox-loop.js';

const POLL_MS = 2_000;

/** Has the inbox emptied when the receiver has notified its queue, and at intervals. */
@Processor(WEBHOOK_INBOX_QUEUE, { concurrency: 1 })
export class InboxProcessor extends DueProcessor {
  constructor(poller: Poller, loop: InboxLoop, inbox: InboxRepository, metrics: Metrics) {
    super(poller, { name: 'webhook-inbox', everyMs: POLL_MS }, [loop]);
    metrics.gauge('webhook_inbox_open', 'Deliveries that still want work', [], async (gauge) =>
      gauge.set(await inbox.count('due_at IS NOT NULL')),
    );
    metrics.gauge('webhook_inbox_dead', 'Dead letters: deliveries that wait for a replay', [], async (gauge) =>
      gauge.set(await inbox.count(`state = 'dead'`)),
    );
  }
}
