import { Module } from '@nestjs/common';
import { PeopleModule } from '../people/people.module.js';
import { PlatformModule } from '../platform/platform.module.js';
import { HeardRepository } from './heard.repository.js';
import { InsightsRepository } from './insights.repository.js';
import { NotesRepository } from './notes.repository.js';
import { PlatformSessions } from './platform-sessions.js';
import { ProcessingController } from './processing.controller.js';
import { ProcessingRepository } from './processing.repository.js';
import { ProcessingEventsHandler } from './processing-events.handler.js';
import { ProcessingReader } from './processing-reader.js';
import { ProcessingReadsRepository } from './processing-reads.repository.js';
import { ProcessingRefresher } from './processing-refresher.js';
import { RecordingUrl } from './recording-url.js';
import { RefreshRepository } from './refresh.repository.js';
import { RefreshBell } from './refresh-bell.js';
import { RefreshesController } from './refreshes.controller.js';
import { Refreshes } from './refreshes.js';
import { RequestOutcomesRepository } from './request-outcomes.repository.js';
import { RequestSender } from './request-sender.js';
import { SessionEventsHandler } from './session-events.handler.js';
import { SessionMerge } from './session-merge.repository.js';
import { SessionNews } from './session-news.js';
import { SessionNotesController } from './session-notes.controller.js';
import { SessionReader } from './session-reader.js';
import { SessionReadsRepository } from './session-reads.repository.js';
import { SessionRefresher } from './session-refresher.js';
import { SessionRequestsController } from './session-requests.controller.js';
import { SessionRequests } from './session-requests.js';
import { SessionRequestsProcessor } from './session-requests.processor.js';
import { SessionRequestsRepository } from './session-requests.repository.js';
import { SessionRequestsHealth } from './session-requests-health.js';
import { SessionSeal } from './session-seal.js';
import { SessionUpdatesController } from './session-updates.controller.js';
import { SessionUpdates } from './session-updates.js';
import { SessionsController } from './sessions.controller.js';
import { SessionsProcessor } from './sessions.processor.js';
import { SessionsHealth } from './sessions-health.js';
import { UpdatesRepository } from './updates.repository.js';
import { WantedRefreshes } from './wanted-refreshes.repository.js';

/** Sessions: what the platform says of them, fetched and kept with their notes, for the EHR to read. */
@Module({
  imports: [PlatformModule, PeopleModule],
  controllers: [
    RefreshesController,
    SessionRequestsController,
    SessionUpdatesController,
    ProcessingController,
    SessionsController,
    SessionNotesController,
  ],
  providers: [
    SessionSeal,
    SessionNews,
    HeardRepository,
    NotesRepository,
    InsightsRepository,
    RefreshRepository,
    WantedRefreshes,
    ProcessingRepository,
    SessionReadsRepository,
    ProcessingReadsRepository,
    ProcessingReader,
    PlatformSessions,
    RefreshBell,
    SessionEventsHandler,
    ProcessingEventsHandler,
    SessionReader,
    RecordingUrl,
    Refreshes,
    SessionMerge,
    SessionRequestsRepository,
    RequestOutcomesRepository,
    SessionRequests,
    SessionRequestsHealth,
    UpdatesRepository,
    SessionUpdates,
    SessionsHealth,
  ],
  exports: [
    SessionSeal,
    SessionNews,
    HeardRepository,
    RefreshRepository,
    ProcessingRepository,
    PlatformSessions,
    RefreshBell,
    SessionReader,
    SessionRequestsRepository,
    RequestOutcomesRepository,
  ],
})
export class SessionsModule {}

/** What answers the sessions' doorbell. */
@Module({
  imports: [SessionsModule, PlatformModule],
  providers: [SessionRefresher, ProcessingRefresher, SessionsProcessor, RequestSender, SessionRequestsProcessor],
})
export class SessionsWorkerModule {}
