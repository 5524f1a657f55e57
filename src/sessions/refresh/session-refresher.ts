import { Injectable } from '@nestjs/common';
import { Clock } from '../../config/clock.js';
import { Random } from '../../config/random.js';
import { Database } from '../../database/database.js';
import { Metrics } from '../../http/server/metrics.js';
import type { SessionAnswer } from '../../platform/clients/sessions-client.js';
import { WorkerProcess } from '../../queue/due-rows/worker-process.js';
import { SessionFeedEvents } from '../model/feed-news.js';
import { FetchLoop } from './fetch-loop.js';
import { PlatformSessions } from './platform-sessions.js';
import { type RefreshClaim, RefreshRepository } from './refresh.repository.js';
import { FETCHES_AT_ONCE } from './refresh-lanes.js';
import { RefreshNotifier } from './refresh-notifier.js';

/** Keeps sessions as the platform has them. */
@Injectable()
export class SessionRefresher extends FetchLoop<RefreshClaim, SessionAnswer> {
  constructor(
    refreshes: RefreshRepository,
    platform: PlatformSessions,
    database: Database,
    notifier: RefreshNotifier,
    news: SessionFeedEvents,
    worker: WorkerProcess,
    clock: Clock,
    random: Random,
    metrics: Metrics,
  ) {
    const fetches = metrics.counter('session_fetches_total', 'Fetches of sessions by what they came to', ['outcome']);
    super(
      {
        name: 'sessions',
        isConfigured: () => platform.canFetchSession,
        places: FETCHES_AT_ONCE,
        mayWork: () => worker.mayWork(),
        claimNext: () => refreshes.claimNext(),
        endClaim: (turn) => refreshes.endClaim(turn),
        nextDueAt: () => refreshes.nextDueAt(),
        fetch: (turn, signal) => platform.fetchSession(turn.sessionId, signal),
        keepAnswer: async (turn, session) => {
          const { notesChanged } = await database.transaction((tx) => refreshes.storeFetched(tx, turn, session));
          if (notesChanged || session.state === 'Error') await news.tell();
        },
        recordNotFound: (turn, waitMs) => database.transaction((tx) => refreshes.storeGone(tx, turn, waitMs)),
        keepFault: (turn, fault) => refreshes.storeFault(turn, fault),
        notifyAt: (moment) => notifier.notifyAt(moment),
        count: (outcome) => fetches.inc({ outcome }),
      },
      clock,
      random,
    );
  }
}
