import { Module } from '@nestjs/common';
import { PeopleModule } from '../people/people.module.js';
import { PlatformModule } from '../platform/platform.module.js';
import { ImportErasure } from './import-erasure.js';
import { ImportsRepository } from './model/imports.repository.js';
import { PlanRepository } from './plan/plan.repository.js';
import { ProviderTokensRepository } from './plan/provider-tokens.repository.js';
import { ReferencesRepository } from './plan/references.repository.js';
import { SnapshotDeletesRepository } from './plan/snapshot-deletes.repository.js';
import { ImportMentions } from './report/import-mentions.js';
import { ImportRowsService } from './report/import-rows.service.js';
import { ImportsController } from './report/imports.controller.js';
import { ImportsService } from './report/imports.service.js';
import { ApplyRepository } from './run/apply.repository.js';
import { ImportRunner } from './run/import-runner.service.js';
import { ImportsProcessor } from './run/imports.processor.js';
import { OutcomesRepository } from './run/outcomes.repository.js';
import { RollBackRepository } from './run/roll-back.repository.js';
import { ImportUploads } from './upload/import-uploads.service.js';
import { StagingRepository } from './upload/staging.repository.js';
import { UploadConnectionPool } from './upload/upload-connections.js';

/** Imports: read, plan, apply, count. */
@Module({
  imports: [PeopleModule, PlatformModule],
  controllers: [ImportsController],
  providers: [
    ImportErasure,
    ImportMentions,
    ImportsService,
    ImportUploads,
    ImportRowsService,
    ImportRunner,
    ImportsRepository,
    UploadConnectionPool,
    StagingRepository,
    PlanRepository,
    ProviderTokensRepository,
    ReferencesRepository,
    SnapshotDeletesRepository,
    ApplyRepository,
    OutcomesRepository,
    RollBackRepository,
  ],
  exports: [ImportMentions, ImportRunner],
})
export class ImportsModule {}

/** Planning and applying, in worker processes only; reading runs where the request arrives. */
@Module({ imports: [ImportsModule], providers: [ImportsProcessor] })
export class ImportsWorkerModule {}
