import { Module } from '@nestjs/common';
import { PeopleModule } from '../people/people.module.js';
import { PlatformModule } from '../platform/platform.module.js';
import { RequestOutcomes } from './create/request-outcomes.repository.js';
import { RequestSender } from './create/request-sender.js';
import { SessionRequests } from './create/session-requests.js';
import { SessionRequestsRepository } from './create/session-requests.repository.js';
import { SessionFeed } from './model/session-feed.js';
import { SessionSeal } from './model/session-seal.js';
import { ProcessingController } from './processing.controller.js';
import { NamedSpeakers } from './read/named-speakers.js';
import { SessionReader } from './read/session-reader.js';
import { SessionRecords } from './read/session-records.js';
import { SessionTimeline } from './read/session-timeline.js';
import { ProcessingRefresher } from './refresh/processing-refresher.js';
import { RefreshRepository, SessionRefresher } from './refresh/refresh.repository.js';
import { RefreshScheduler } from './refresh/refresh-scheduler.repository.js';
import { SessionContentRepository } from './refresh/session-content.repository.js';
import { SessionEventsRepository } from './refresh/session-events.repository.js';
import { SessionData } from './session-data.js';
import { SessionEventsHandler } from './session-events.handler.js';
import { SessionsController } from './sessions.controller.js';
import { SessionRequestsProcessor, SessionsProcessor } from './sessions.processor.js';
import { SessionsHealth } from './sessions-health.js';
import { SessionUpdates } from './update/session-updates.js';

/** Sessions of the platform, fetched and stored with their notes for the EHR. */
@Module({
  imports: [PlatformModule, PeopleModule],
  controllers: [SessionsController, ProcessingController],
  providers: [
    SessionSeal,
    SessionFeed,
    SessionEventsRepository,
    SessionContentRepository,
    RefreshRepository,
    RefreshScheduler,
    SessionEventsHandler,
    SessionReader,
    NamedSpeakers,
    SessionTimeline,
    SessionRecords,
    RequestOutcomes,
    SessionRequestsRepository,
    SessionRequests,
    SessionData,
    SessionUpdates,
    SessionsHealth,
  ],
  exports: [SessionSeal, SessionReader, SessionRecords, SessionEventsRepository, RefreshRepository, RequestOutcomes],
})
export class SessionsModule {}

/** Providers of worker processes only. */
@Module({
  imports: [SessionsModule, PlatformModule],
  providers: [SessionRefresher, ProcessingRefresher, SessionsProcessor, RequestSender, SessionRequestsProcessor],
})
export class SessionsWorkerModule {}
