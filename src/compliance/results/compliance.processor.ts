import { Processor } from '@nestjs/bullmq';
import { COMPLIANCE_QUEUE } from '../../queue/backend/queue-names.js';
import { DueProcessor } from '../../queue/due-rows/due-processor.js';
import { Poller } from '../../queue/notifier/poller.js';
import { JobFeedEvents } from '../model/job-feed-events.js';
import { JobsRepository } from '../model/jobs.repository.js';
import { ResultRefresher } from './result-refresher.js';

@Processor(COMPLIANCE_QUEUE)
export class ComplianceProcessor extends DueProcessor {
  constructor(refresher: ResultRefresher, jobs: JobsRepository, feedEvents: JobFeedEvents, poller: Poller) {
    const also = async () => {
      await jobs.settleLost();
      await feedEvents.publish();
    };
    super(poller, { name: 'compliance', everyMs: 2_000, also }, [refresher]);
  }
}
