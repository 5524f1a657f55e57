import { Module } from '@nestjs/common';
import { PlatformModule } from '../platform/platform.module.js';
import { IdentityService } from './api/identity.service.js';
import { ClientsController, ProvidersController } from './api/people.controller.js';
import { PeopleService } from './api/people.service.js';
import { PeopleLookup } from './api/people-lookup.service.js';
import { PeopleMonitoring } from './api/people-monitoring.js';
import { PeopleController, PeopleCsvController } from './api/people-queries.controller.js';
import { PeopleSelection } from './api/people-selection.service.js';
import { PersonRecords } from './api/person-records.js';
import { UserCreatedHandler } from './api/user-created.handler.js';
import { PeopleProcessor } from './people.processor.js';
import { PeopleCalls } from './people-calls.service.js';
import { RestoredPeople } from './restored-people.js';
import { ProfileSeal } from './rules/profile.js';
import { CallsRepository } from './store/calls.repository.js';
import { ClientData } from './store/client-data.js';
import { DeletedIds } from './store/deleted-ids.repository.js';
import { DependentsRepository } from './store/dependents.repository.js';
import { DuePeopleRepository } from './store/due-people.repository.js';
import { FormerIdsRepository } from './store/former-ids.repository.js';
import { PeopleRepository } from './store/people.repository.js';
import { PlatformUsersRepository } from './store/platform-users.repository.js';
import { ResolvedPartiesRepository } from './store/resolved-parties.js';

const shared = [
  PeopleCalls,
  PeopleLookup,
  PeopleService,
  PersonRecords,
  ProfileSeal,
  ResolvedPartiesRepository,
  RestoredPeople,
  CallsRepository,
  DeletedIds,
  DependentsRepository,
  DuePeopleRepository,
  ClientData,
  FormerIdsRepository,
  PeopleRepository,
  PlatformUsersRepository,
];

/** Providers and clients: the desired state of the EHR, the known state of the platform, and the steps between them. */
@Module({
  imports: [PlatformModule],
  controllers: [ProvidersController, ClientsController, PeopleController, PeopleCsvController],
  providers: [...shared, IdentityService, PeopleMonitoring, PeopleSelection, UserCreatedHandler],
  exports: shared,
})
export class PeopleModule {}

/** Calls the platform; only in worker processes. */
@Module({ imports: [PeopleModule, PlatformModule], providers: [PeopleProcessor] })
export class PeopleWorkerModule {}
