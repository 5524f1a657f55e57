import { Processor } from '@nestjs/bullmq';
import { DueProcessor } from '../queue/due-rows/due-loop.js';
import { Poller } from '../queue/notifier/poller.js';
import { RequestSender } from './create/request-sender.js';
import { ProcessingRefresher } from './refresh/processing-refresher.js';
import { SessionRefresher } from './refresh/refresh.repository.js';

@Processor('sessions')
export class SessionsProcessor extends DueProcessor {
  constructor(sessions: SessionRefresher, processing: ProcessingRefresher, poller: Poller) {
    super(poller, [sessions, processing]);
  }
}

@Processor('session-requests')
export class SessionRequestsProcessor extends DueProcessor {
  constructor(sender: RequestSender, poller: Poller) {
    const lost = { name: 'lost session requests', nextDue: sender.lostSince, work: () => sender.settleLost() };
    super(poller, [sender], [lost]);
  }
}
