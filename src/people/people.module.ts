import { Module } from '@nestjs/common';
import { PlatformModule } from '../platform/platform.module.js';
import { DesiredStateRepository } from './desired/desired-state.repository.js';
import { PeopleService } from './desired/people.service.js';
import { UserCreatedHandler } from './desired/user-created.handler.js';
import { ProfileSeal } from './model/profile.js';
import { ClientsController, PeopleController, ProvidersController } from './read/people.controller.js';
import { PeopleHealth, PeopleMetrics, StuckRepository } from './read/people-monitoring.js';
import { TraceService } from './read/trace.service.js';
import { ClaimRepository } from './reconcile/claim.repository.js';
import { PlatformPeople } from './reconcile/platform-people.js';
import { Reconciler } from './reconcile/reconciler.processor.js';
import { CallResultsRepository } from './reconcile/results.repository.js';
import { CircuitsRepository } from './store/circuits.repository.js';
import { DependentsRepository } from './store/dependents.repository.js';
import { DuePeopleRepository } from './store/due-people.repository.js';
import { PeopleRepository } from './store/people.repository.js';
import { PlatformUsersRepository } from './store/platform-users.repository.js';
import { ResolvedPartiesRepository } from './store/resolved-parties.js';

/** Providers and clients: what the EHR wants, what the platform has, and the decisions between the two. */
@Module({
  imports: [PlatformModule],
  controllers: [ProvidersController, ClientsController, PeopleController],
  providers: [
    PeopleService,
    TraceService,
    PeopleRepository,
    DesiredStateRepository,
    DependentsRepository,
    DuePeopleRepository,
    ClaimRepository,
    CallResultsRepository,
    CircuitsRepository,
    ProfileSeal,
    PlatformPeople,
    UserCreatedHandler,
    PlatformUsersRepository,
    ResolvedPartiesRepository,
    PeopleHealth,
    PeopleMetrics,
    StuckRepository,
  ],
  exports: [
    ClaimRepository,
    CallResultsRepository,
    CircuitsRepository,
    DependentsRepository,
    DuePeopleRepository,
    PeopleService,
    PlatformPeople,
    ProfileSeal,
    ResolvedPartiesRepository,
  ],
})
export class PeopleModule {}

/** What calls the platform: in worker processes only. */
@Module({ imports: [PeopleModule, PlatformModule], providers: [Reconciler] })
export class PeopleWorkerModule {}
