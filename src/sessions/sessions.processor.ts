import { Processor } from '@nestjs/bullmq';
import { SESSION_QUEUE } from '../queue/backend/queue-names.js';
import { DueProcessor } from '../queue/due-rows/due-processor.js';
import { Poller } from '../queue/notifier/poller.js';
import { SessionFeedEvents } from './model/session-feed-events.js';
import { ProcessingRefresher } from './processing/processing-refresher.js';
import { SessionRefresher } from './refresh/session-refresher.js';

@Processor(SESSION_QUEUE)
export class SessionsProcessor extends DueProcessor {
  constructor(
    sessions: SessionRefresher,
    processing: ProcessingRefresher,
    feedEvents: SessionFeedEvents,
    poller: Poller,
  ) {
    super(poller, { name: 'sessions', everyMs: 1_000, also: () => feedEvents.publish() }, [sessions, processing]);
  }
}
