import { Injectable } from '@nestjs/common';
import { DueProcessor } from '../due-rows/due-loop.js';
import { QueueStore } from '../queue/backend/queue-store.js';
import { Poller } from '../queue/notifier/poller.js';
import { RequestSender } from './create/request-sender.js';
import { ProcessingRefresher } from './refresh/processing-refresher.js';
import { SessionRefresher } from './refresh/refresh.repository.js';

@Injectable()
export class SessionsProcessor extends DueProcessor {
  constructor(store: QueueStore, sessions: SessionRefresher, processing: ProcessingRefresher, poller: Poller) {
    super('sessions', store, poller, [sessions, processing]);
  }
}

@Injectable()
export class SessionRequestsProcessor extends DueProcessor {
  constructor(store: QueueStore, sender: RequestSender, poller: Poller) {
    const work = () => sender.settleLost();
    super('session-requests', store, poller, [sender], [['lost session requests', sender.lostSince, work]]);
  }
}
