import { Module } from '@nestjs/common';
import { PeopleModule } from '../people/people.module.js';
import { PlatformModule } from '../platform/platform.module.js';
import { ImportFiles } from './model/import-files.js';
import { ImportsRepository } from './model/imports.repository.js';
import { RawRowsRepository } from './model/raw-rows.repository.js';
import { ReferenceKeys } from './model/reference-keys.js';
import { ConflictsRepository } from './plan/conflicts.repository.js';
import { DeletesRepository } from './plan/deletes.repository.js';
import { GuardsRepository } from './plan/guards.repository.js';
import { MentionsRepository } from './plan/mentions.repository.js';
import { PlanRepository } from './plan/plan.repository.js';
import { ReferencesRepository } from './plan/references.repository.js';
import { ImportOutlook } from './report/import-outlook.js';
import { ImportProgress } from './report/import-progress.js';
import { ImportRowsService } from './report/import-rows.service.js';
import { ImportUploads } from './report/import-uploads.service.js';
import { ImportsController } from './report/imports.controller.js';
import { ImportsService } from './report/imports.service.js';
import { TotalsRepository } from './report/totals.repository.js';
import { ApplyRepository } from './run/apply.repository.js';
import { ApplyDeletesRepository } from './run/apply-deletes.repository.js';
import { ApplyListsRepository } from './run/apply-lists.repository.js';
import { CancelRepository } from './run/cancel.repository.js';
import { ImportPreparation } from './run/import-preparation.service.js';
import { ImportSteering } from './run/import-steering.service.js';
import { ImportSteps } from './run/import-steps.service.js';
import { ImportsProcessor } from './run/imports.processor.js';
import { ImportsHealth } from './run/imports-health.js';
import { OutcomesRepository } from './run/outcomes.repository.js';
import { PreparationRepository } from './run/preparation.repository.js';
import { RetryRepository } from './run/retry.repository.js';
import { SteeringRepository } from './run/steering.repository.js';
import { StagingRepository } from './upload/staging.repository.js';
import { UnchangedRowsRepository } from './upload/unchanged-rows.repository.js';
import { UploadConnectionPool } from './upload/upload-connections.js';

/** Imports: read, plan, apply, count. */
@Module({
  imports: [PeopleModule, PlatformModule],
  controllers: [ImportsController],
  providers: [
    ImportsService,
    ImportUploads,
    ImportRowsService,
    ImportProgress,
    ImportSteering,
    ImportSteps,
    SteeringRepository,
    ImportsRepository,
    StagingRepository,
    RawRowsRepository,
    UnchangedRowsRepository,
    UploadConnectionPool,
    PlanRepository,
    DeletesRepository,
    MentionsRepository,
    ConflictsRepository,
    ApplyRepository,
    ApplyListsRepository,
    ApplyDeletesRepository,
    ImportPreparation,
    PreparationRepository,
    ImportsHealth,
    ImportOutlook,
    OutcomesRepository,
    TotalsRepository,
    CancelRepository,
    RetryRepository,
    GuardsRepository,
    ReferenceKeys,
    ReferencesRepository,
    ImportFiles,
  ],
  exports: [ImportSteps],
})
export class ImportsModule {}

/** Planning and applying, in worker processes only; reading runs where the request arrives. */
@Module({ imports: [ImportsModule], providers: [ImportsProcessor] })
export class ImportsWorkerModule {}
