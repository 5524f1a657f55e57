import { Module } from '@nestjs/common';
import { PlatformModule } from '../platform/platform.module.js';
import { ComplianceController } from './compliance.controller.js';
import { ComplianceProcessor } from './compliance.processor.js';
import { ComplianceService } from './compliance.service.js';
import { ComplianceSeal } from './compliance-seal.js';
import { ComplianceEventsHandler, SmartEditEventsHandler } from './job-events.handler.js';
import { JobNews } from './job-news.js';
import { JobsRepository } from './jobs.repository.js';
import { JobsHeardRepository } from './jobs-heard.repository.js';
import { ResultRefresher } from './result-refresher.js';
import { ResultsRepository } from './results.repository.js';
import { SmartEditController } from './smart-edit.controller.js';
import { SubmissionOutcomes } from './submission-outcomes.js';
import { Submissions } from './submissions.js';

/** Compliance jobs, submitted for the EHR and followed to their results; and smart edit jobs, as their events tell. */
@Module({
  imports: [PlatformModule],
  controllers: [ComplianceController, SmartEditController],
  providers: [
    ComplianceService,
    Submissions,
    SubmissionOutcomes,
    ComplianceSeal,
    JobsRepository,
    ResultsRepository,
    JobsHeardRepository,
    JobNews,
    ComplianceEventsHandler,
    SmartEditEventsHandler,
  ],
  exports: [JobNews, JobsRepository, ResultsRepository],
})
export class ComplianceModule {}

/** What runs in worker processes only. */
@Module({ imports: [ComplianceModule, PlatformModule], providers: [ResultRefresher, ComplianceProcessor] })
export class ComplianceWorkerModule {}
