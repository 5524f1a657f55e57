import { Module } from '@nestjs/common';
import { PeopleModule } from '../people/people.module.js';
import { PlatformModule } from '../platform/platform.module.js';
import { ApplyRepository } from './apply.repository.js';
import { ApplyDeletesRepository } from './apply-deletes.repository.js';
import { ApplyListsRepository } from './apply-lists.repository.js';
import { CancelRepository } from './cancel.repository.js';
import { DeletesRepository } from './deletes.repository.js';
import { ForecastRepository } from './forecast.repository.js';
import { GuardsRepository } from './guards.repository.js';
import { ImportFiles } from './import-files.js';
import { ImportOutlook } from './import-outlook.js';
import { ImportPreparation } from './import-preparation.service.js';
import { ImportProgress } from './import-progress.js';
import { ImportRowsService } from './import-rows.service.js';
import { ImportSteering } from './import-steering.service.js';
import { ImportSteps } from './import-steps.service.js';
import { ImportUploads } from './import-uploads.service.js';
import { ImportsController } from './imports.controller.js';
import { ImportsProcessor } from './imports.processor.js';
import { ImportsRepository } from './imports.repository.js';
import { ImportsService } from './imports.service.js';
import { ImportsHealth } from './imports-health.js';
import { MentionsRepository } from './mentions.repository.js';
import { PlanRepository } from './plan.repository.js';
import { PreparationRepository } from './preparation.repository.js';
import { ReferenceKeys } from './reference-keys.js';
import { ReferencesRepository } from './references.repository.js';
import { RetryRepository } from './retry.repository.js';
import { RowCellsRepository } from './row-cells.repository.js';
import { StagingRepository } from './staging.repository.js';
import { SteeringRepository } from './steering.repository.js';
import { TallyRepository } from './tally.repository.js';
import { TotalsRepository } from './totals.repository.js';
import { UnchangedRowsRepository } from './unchanged-rows.repository.js';
import { UploadRoom } from './upload-room.js';

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
    RowCellsRepository,
    UnchangedRowsRepository,
    UploadRoom,
    PlanRepository,
    DeletesRepository,
    MentionsRepository,
    ForecastRepository,
    ApplyRepository,
    ApplyListsRepository,
    ApplyDeletesRepository,
    ImportPreparation,
    PreparationRepository,
    ImportsHealth,
    ImportOutlook,
    TallyRepository,
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
