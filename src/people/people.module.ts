import { Module } from '@nestjs/common';
import { PlatformModule } from '../platform/platform.module.js';
import { CircuitRepository } from './circuit.repository.js';
import { ClientsController } from './clients.controller.js';
import { DuePeopleRepository } from './due-people.repository.js';
import { MirrorService } from './mirror.service.js';
import { ParticipantsRepository } from './participants.repository.js';
import { PeopleController } from './people.controller.js';
import { PeopleProcessor } from './people.processor.js';
import { PeopleRepository } from './people.repository.js';
import { PeopleService } from './people.service.js';
import { PeopleHealth } from './people-health.js';
import { PeopleMetrics } from './people-metrics.js';
import { PlatformAddressRepository } from './platform-address.repository.js';
import { PlatformPeople } from './platform-people.js';
import { PlatformUsersRepository } from './platform-users.repository.js';
import { ProfileSeal } from './profile.js';
import { ProvidersController } from './providers.controller.js';
import { SettleRepository } from './settle.repository.js';
import { StoppedImportsRepository } from './stopped-imports.repository.js';
import { StuckRepository } from './stuck.repository.js';
import { TraceService } from './trace.service.js';
import { TurnRepository } from './turn.repository.js';
import { UserCreatedHandler } from './user-created.handler.js';
import { WakesRepository } from './wakes.repository.js';
import { WishesRepository } from './wishes.repository.js';

/** Providers and clients: what the EHR wants, what the platform has, and the decisions between the two. */
@Module({
  imports: [PlatformModule],
  controllers: [ProvidersController, ClientsController, PeopleController],
  providers: [
    PeopleService,
    TraceService,
    PeopleRepository,
    WishesRepository,
    WakesRepository,
    DuePeopleRepository,
    StoppedImportsRepository,
    TurnRepository,
    SettleRepository,
    CircuitRepository,
    ProfileSeal,
    PlatformPeople,
    MirrorService,
    UserCreatedHandler,
    PlatformUsersRepository,
    PlatformAddressRepository,
    ParticipantsRepository,
    PeopleHealth,
    PeopleMetrics,
    StuckRepository,
  ],
  exports: [
    CircuitRepository,
    PlatformPeople,
    PeopleRepository,
    WakesRepository,
    WishesRepository,
    ProfileSeal,
    PeopleService,
    MirrorService,
    ParticipantsRepository,
  ],
})
export class PeopleModule {}

/** The part of the mirror that calls the platform: in worker processes only. */
@Module({ imports: [PeopleModule, PlatformModule], providers: [PeopleProcessor] })
export class PeopleWorkerModule {}
