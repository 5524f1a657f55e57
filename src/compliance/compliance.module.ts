import { Module } from '@nestjs/common';
import { PlatformModule } from '../platform/platform.module.js';
import { ComplianceController } from './compliance.controller.js';
import { ComplianceService } from './compliance.service.js';
import { ComplianceSeal } from './job.js';
import { JobEventsHandler, JobFeedEvents } from './job-events.handler.js';
import { JobsRepository } from './jobs.repository.js';
import { ComplianceProcessor, ResultRefresher } from './result-refresher.js';

/** Compliance jobs, submitted for the EHR and tracked until their results; and the events of smart edit jobs. */
@Module({
  imports: [PlatformModule],
  controllers: [ComplianceController],
  providers: [ComplianceService, ComplianceSeal, JobsRepository, JobFeedEvents, JobEventsHandler],
  exports: [ComplianceSeal, JobFeedEvents, JobsRepository],
})
export class ComplianceModule {}

/** Providers of worker processes only. */
@Module({ imports: [ComplianceModule, PlatformModule], providers: [ResultRefresher, ComplianceProcessor] })
export class ComplianceWorkerModule {}
