import { Module } from '@nestjs/common';
import { PeopleModule } from '../people/people.module.js';
import { PlatformModule } from '../platform/platform.module.js';
import { RequestAttempts } from './create/request-attempts.repository.js';
import { RequestClaims } from './create/request-claims.repository.js';
import { RequestSender } from './create/request-sender.service.js';
import { SessionRequestsRepository } from './create/session-requests.repository.js';
import { SessionRequests } from './create/session-requests.service.js';
import { DueSessionsRepository } from './due-sessions.repository.js';
import { CallGate } from './fetch/call-gate.js';
import { FetchesRepository } from './fetch/fetches.repository.js';
import { RefreshesRepository } from './fetch/refreshes.repository.js';
import { SessionContentRepository } from './fetch/session-content.repository.js';
import { SessionSeal } from './model/session-seal.js';
import { SessionsRepository } from './model/sessions.repository.js';
import { ProcessingController } from './processing/processing.controller.js';
import { ProcessingsRepository } from './processing/processings.repository.js';
import { NamedSpeakers } from './read/named-speakers.js';
import { SessionReader } from './read/session-reader.js';
import { SessionRecords } from './read/session-records.js';
import { SessionTimeline } from './read/session-timeline.js';
import { SessionData } from './session-data.js';
import { SessionEventsHandler } from './session-events.handler.js';
import { SessionsController } from './sessions.controller.js';
import { SessionsProcessor } from './sessions.processor.js';
import { SessionsHealth } from './sessions-health.js';
import { SessionUpdates } from './update/session-updates.service.js';
import { UpdatesRepository } from './update/updates.repository.js';

/** Sessions of the platform, fetched and stored with their notes for the EHR. */
@Module({
  imports: [PlatformModule, PeopleModule],
  controllers: [SessionsController, ProcessingController],
  providers: [
    ...[SessionSeal, SessionsRepository],
    ...[CallGate, FetchesRepository, RefreshesRepository, SessionContentRepository, ProcessingsRepository],
    ...[RequestClaims, RequestAttempts, SessionRequestsRepository, SessionRequests],
    ...[SessionUpdates, UpdatesRepository],
    ...[SessionReader, NamedSpeakers, SessionTimeline, SessionRecords],
    ...[SessionEventsHandler, SessionData, SessionsHealth],
  ],
  exports: [
    CallGate,
    FetchesRepository,
    ProcessingsRepository,
    RequestAttempts,
    SessionReader,
    SessionRecords,
    SessionSeal,
  ],
})
export class SessionsModule {}

/** Providers of worker processes only. */
@Module({
  imports: [SessionsModule, PlatformModule],
  providers: [SessionsProcessor, DueSessionsRepository, RequestSender],
})
export class SessionsWorkerModule {}
