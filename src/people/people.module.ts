import { Module } from '@nestjs/common';
import { PlatformModule } from '../platform/platform.module.js';
import { DesiredStateRepository } from './desired/desired-state.repository.js';
import { PeopleService } from './desired/people.service.js';
import { UserCreatedHandler } from './desired/user-created.handler.js';
import { ProfileSeal } from './model/profile.js';
import { ClientsController } from './read/clients.controller.js';
import { PeopleController } from './read/people.controller.js';
import { PeopleHealth } from './read/people-health.js';
import { PeopleMetrics } from './read/people-metrics.js';
import { ProvidersController } from './read/providers.controller.js';
import { StuckRepository } from './read/stuck.repository.js';
import { TraceService } from './read/trace.service.js';
import { ClaimRepository } from './reconcile/claim.repository.js';
import { PeopleProcessor } from './reconcile/people.processor.js';
import { PlatformPeople } from './reconcile/platform-people.js';
import { Reconciler } from './reconcile/reconciler.js';
import { CallResultsRepository } from './reconcile/results.repository.js';
import { CircuitRepository } from './store/circuit.repository.js';
import { DependentsRepository } from './store/dependents.repository.js';
import { DuePeopleRepository } from './store/due-people.repository.js';
import { StoppedImportsRepository } from './store/paused-imports.repository.js';
import { PeopleRepository } from './store/people.repository.js';
import { PlatformAddressRepository } from './store/platform-address.repository.js';
import { PlatformUsersRepository } from './store/platform-users.repository.js';
import { ResolvedPartiesRepository } from './store/resolved-parties.repository.js';

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
    StoppedImportsRepository,
    ClaimRepository,
    CallResultsRepository,
    CircuitRepository,
    ProfileSeal,
    PlatformPeople,
    Reconciler,
    UserCreatedHandler,
    PlatformUsersRepository,
    PlatformAddressRepository,
    ResolvedPartiesRepository,
    PeopleHealth,
    PeopleMetrics,
    StuckRepository,
  ],
  exports: [
    CircuitRepository,
    PlatformPeople,
    PeopleRepository,
    DependentsRepository,
    DesiredStateRepository,
    ProfileSeal,
    PeopleService,
    Reconciler,
    ResolvedPartiesRepository,
  ],
})
export class PeopleModule {}

/** The part of the mirror that calls the platform: in worker processes only. */
@Module({ imports: [PeopleModule, PlatformModule], providers: [PeopleProcessor] })
export class PeopleWorkerModule {}
