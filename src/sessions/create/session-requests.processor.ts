import { Processor } from '@nestjs/bullmq';
import { SESSION_REQUEST_QUEUE } from '../../queue/backend/queue-names.js';
import { DueProcessor } from '../../queue/due-rows/due-processor.js';
import { Poller } from '../../queue/notifier/poller.js';
import { RequestSender } from './request-sender.js';

@Processor(SESSION_REQUEST_QUEUE)
export class SessionRequestsProcessor extends DueProcessor {
  constructor(sender: RequestSender, poller: Poller) {
    super(poller, { name: 'session-requests', everyMs: 1_000, also: () => sender.settleLost() }, [sender]);
  }
}
