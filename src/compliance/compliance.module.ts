import { Module } from '@nestjs/common';
import { PlatformModule } from '../platform/platform.module.js';
import { ComplianceSeal } from './model/compliance-seal.js';
import { JobFeedEvents } from './model/job-feed-events.js';
import { JobsRepository } from './model/jobs.repository.js';
import { ComplianceProcessor } from './results/compliance.processor.js';
import { ComplianceEventsHandler, SmartEditEventsHandler } from './results/job-events.handler.js';
import { JobEventsRepository } from './results/job-events.repository.js';
import { ResultRefresher } from './results/result-refresher.js';
import { SmartEditController } from './results/smart-edit.controller.js';
import { ComplianceController } from './submit/compliance.controller.js';
import { ComplianceService } from './submit/compliance.service.js';
import { Submissions } from './submit/submissions.js';

/** Compliance jobs, submitted for the EHR and followed to their results; and smart edit jobs, as their events report. */
@Module({
  imports: [PlatformModule],
  controllers: [ComplianceController, SmartEditController],
  providers: [
    ComplianceService,
    Submissions,
    ComplianceSeal,
    JobsRepository,
    JobEventsRepository,
    JobFeedEvents,
    ComplianceEventsHandler,
    SmartEditEventsHandler,
  ],
  exports: [ComplianceSeal, JobFeedEvents, JobsRepository],
})
export class ComplianceModule {}

/** What runs in worker processes only. */
@Module({ imports: [ComplianceModule, PlatformModule], providers: [ResultRefresher, ComplianceProcessor] })
export class ComplianceWorkerModule {}
