import { Module } from '@nestjs/common';
import { PeopleModule } from '../people/people.module.js';
import { PlatformModule } from '../platform/platform.module.js';
import { CorrectionsService } from './api/corrections.service.js';
import { ImportMentions } from './api/import-mentions.js';
import { ImportRowsService } from './api/import-rows.service.js';
import { ImportsController } from './api/imports.controller.js';
import { ImportsService } from './api/imports.service.js';
import { RowCellsRepository } from './api/row-cells.repository.js';
import { ImportsRepository } from './model/imports.repository.js';
import { GuardsRepository } from './plan/guards.repository.js';
import { PlanRepository } from './plan/plan.repository.js';
import { RepeatedRows } from './plan/repeated-rows.js';
import { SnapshotDeletes } from './plan/snapshot-deletes.repository.js';
import { ImportCounts } from './run/import-counts.repository.js';
import { ImportErasure } from './run/import-erasure.js';
import { ImportSteps } from './run/import-steps.service.js';
import { ImportsProcessor } from './run/imports.processor.js';
import { LaterStatements } from './run/later-statements.js';
import { OutcomesRepository } from './run/outcomes.repository.js';
import { Planner } from './run/planner.service.js';
import { RestoredImports } from './run/restored-imports.js';
import { RowApplier } from './run/row-applier.js';
import { RowsToApply } from './run/rows-to-apply.repository.js';
import { WithdrawalRepository } from './run/withdrawal.repository.js';
import { RowCorrector } from './upload/row-corrector.js';
import { StagingRepository } from './upload/staging.repository.js';
import { StoredRecords } from './upload/stored-records.repository.js';
import { UploadConnectionPool } from './upload/upload-connections.js';
import { UploadsService } from './upload/uploads.service.js';

/** Imports: read, plan, apply, count. */
@Module({
  imports: [PeopleModule, PlatformModule],
  controllers: [ImportsController],
  providers: [
    CorrectionsService,
    GuardsRepository,
    ImportErasure,
    ImportMentions,
    ImportRowsService,
    ImportCounts,
    ImportSteps,
    ImportsRepository,
    ImportsService,
    LaterStatements,
    OutcomesRepository,
    PlanRepository,
    Planner,
    RepeatedRows,
    RowCellsRepository,
    RowCorrector,
    RestoredImports,
    RowApplier,
    RowsToApply,
    SnapshotDeletes,
    StagingRepository,
    StoredRecords,
    UploadConnectionPool,
    UploadsService,
    WithdrawalRepository,
  ],
  exports: [ImportSteps, ImportsRepository],
})
export class ImportsModule {}

/** Plans and runs imports, only in worker processes. Uploads are read by the process that receives them. */
@Module({ imports: [ImportsModule], providers: [ImportsProcessor] })
export class ImportsWorkerModule {}
