import { Module } from '@nestjs/common';
import { PeopleModule } from '../people/people.module.js';
import { PlatformModule } from '../platform/platform.module.js';
import { RequestOutcomesRepository } from './create/request-outcomes.repository.js';
import { RequestSender } from './create/request-sender.js';
import { SessionRequestsController } from './create/session-requests.controller.js';
import { SessionRequests } from './create/session-requests.js';
import { SessionRequestsProcessor } from './create/session-requests.processor.js';
import { SessionRequestsRepository } from './create/session-requests.repository.js';
import { SessionFeedEvents } from './model/session-feed-events.js';
import { SessionSeal } from './model/session-seal.js';
import { ProcessingController } from './processing/processing.controller.js';
import { ProcessingRepository } from './processing/processing.repository.js';
import { ProcessingEventsHandler } from './processing/processing-events.handler.js';
import { ProcessingReadsRepository } from './processing/processing-reads.repository.js';
import { ProcessingRefresher } from './processing/processing-refresher.js';
import { RefreshesController } from './processing/refreshes.controller.js';
import { SessionNotesController } from './read/session-notes.controller.js';
import { SessionReader } from './read/session-reader.js';
import { SessionReadsRepository } from './read/session-reads.repository.js';
import { SessionsController } from './read/sessions.controller.js';
import { InsightsRepository } from './refresh/insights.repository.js';
import { NotesRepository } from './refresh/notes.repository.js';
import { PlatformSessions } from './refresh/platform-sessions.js';
import { RefreshRepository } from './refresh/refresh.repository.js';
import { RefreshNotifier } from './refresh/refresh-notifier.js';
import { SessionEventsRepository } from './refresh/session-events.repository.js';
import { SessionMerge } from './refresh/session-merge.repository.js';
import { SessionRefresher } from './refresh/session-refresher.js';
import { WantedRefreshes } from './refresh/wanted-refreshes.repository.js';
import { SessionEventsHandler } from './session-events.handler.js';
import { SessionsProcessor } from './sessions.processor.js';
import { SessionsHealth } from './sessions-health.js';
import { SessionUpdatesController } from './update/session-updates.controller.js';
import { SessionUpdates } from './update/session-updates.js';
import { UpdatesRepository } from './update/updates.repository.js';

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
    SessionFeedEvents,
    SessionEventsRepository,
    NotesRepository,
    InsightsRepository,
    RefreshRepository,
    WantedRefreshes,
    ProcessingRepository,
    SessionReadsRepository,
    ProcessingReadsRepository,
    PlatformSessions,
    RefreshNotifier,
    SessionEventsHandler,
    ProcessingEventsHandler,
    SessionReader,
    SessionMerge,
    SessionRequestsRepository,
    RequestOutcomesRepository,
    SessionRequests,
    UpdatesRepository,
    SessionUpdates,
    SessionsHealth,
  ],
  exports: [
    SessionSeal,
    SessionFeedEvents,
    SessionEventsRepository,
    RefreshRepository,
    ProcessingRepository,
    PlatformSessions,
    RefreshNotifier,
    SessionReader,
    SessionRequestsRepository,
    RequestOutcomesRepository,
  ],
})
export class SessionsModule {}

/** What answers the sessions' notifier. */
@Module({
  imports: [SessionsModule, PlatformModule],
  providers: [SessionRefresher, ProcessingRefresher, SessionsProcessor, RequestSender, SessionRequestsProcessor],
})
export class SessionsWorkerModule {}
