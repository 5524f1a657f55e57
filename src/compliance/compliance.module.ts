import { Module } from '@nestjs/common';
import { PlatformModule } from '../platform/platform.module.js';
import { ComplianceController } from './compliance.controller.js';
import { ComplianceHealth } from './compliance-health.js';
import { ComplianceJobs } from './compliance-jobs.js';
import { ComplianceSeal } from './job.js';
import { JobEventsHandler } from './job-events.handler.js';
import { JobOutcomes } from './job-outcomes.repository.js';
import { JobSender } from './job-sender.js';
import { JobsRepository } from './jobs.repository.js';
import { ComplianceProcessor, ResultRefresher } from './result-refresher.js';

/** Compliance jobs, submitted for the EHR and tracked until their results; and the events of smart edit jobs. */
@Module({
  imports: [PlatformModule],
  controllers: [ComplianceController],
  providers: [ComplianceJobs, ComplianceSeal, JobsRepository, JobOutcomes, JobEventsHandler, ComplianceHealth],
  exports: [ComplianceSeal, JobOutcomes, JobsRepository],
})
export class ComplianceModule {}

/** Providers of worker processes only. */
@Module({ imports: [ComplianceModule, PlatformModule], providers: [JobSender, ResultRefresher, ComplianceProcessor] })
export class ComplianceWorkerModule {}
