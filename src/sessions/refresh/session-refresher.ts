import { Injectable } from '@nestjs/common';
import type { SessionAnswer } from '../../platform/contract/wire-types.js';
import { FetchLoop, FetchParts } from '../../queue/due-rows/fetch-loop.js';
import type { SessionRow } from '../model/session-row.js';
import { PlatformSessions } from './platform-sessions.js';
import { DUE_SESSIONS, RefreshRepository } from './refresh.repository.js';
import { RefreshNotifier } from './refresh-notifier.js';
import { FETCHES_AT_ONCE } from './wanted-refreshes.repository.js';

/** Keeps sessions as the platform has them. */
@Injectable()
export class SessionRefresher extends FetchLoop<SessionRow, SessionAnswer> {
  constructor(refreshes: RefreshRepository, platform: PlatformSessions, notifier: RefreshNotifier, parts: FetchParts) {
    super(
      {
        name: 'sessions',
        counter: { name: 'session_fetches_total', help: 'Fetches of sessions by what they came to' },
        places: FETCHES_AT_ONCE,
        isConfigured: () => platform.canFetchSession,
        fetch: ({ session_id: sessionId }, signal) => {
          if (sessionId === null) throw new Error('A session that the platform has not named was due to be fetched.');
          return platform.fetchSession(sessionId, signal);
        },
        storeAnswer: (tx, fetched, session) => refreshes.storeFetched(tx, fetched, session),
        storeNotFound: (fetched, waitMs) => refreshes.notFound(fetched, waitMs),
        notifyAt: (moment) => notifier.notifyAt(moment),
      },
      parts.dueRows(DUE_SESSIONS),
      parts,
    );
  }
}
