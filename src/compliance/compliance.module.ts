import { Module } from '@nestjs/common';
import { PlatformModule } from '../platform/platform.module.js';
import { SessionsModule } from '../sessions/sessions.module.js';
import { ComplianceController } from './compliance.controller.js';
import { ComplianceProcessor } from './compliance.processor.js';
import { ComplianceJobs } from './compliance-jobs.service.js';
import { JobEventsHandler } from './job-events.handler.js';
import { ComplianceSeal } from './job-row.js';
import { JobsRepository } from './jobs.repository.js';
import { Submissions } from './submissions.service.js';

/** Compliance jobs, submitted for the EHR and tracked until their results; and the events of smart edit jobs. */
@Module({
  imports: [PlatformModule, SessionsModule],
  controllers: [ComplianceController],
  providers: [ComplianceJobs, Submissions, JobEventsHandler, JobsRepository, ComplianceSeal],
  exports: [JobsRepository, ComplianceSeal],
})
export class ComplianceModule {}

/** Providers of worker processes only. */
@Module({ imports: [ComplianceModule, PlatformModule, SessionsModule], providers: [ComplianceProcessor] })
export class ComplianceWorkerModule {}
