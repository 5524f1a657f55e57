import { Injectable } from '@nestjs/common';
import { FetchLoop, FetchParts } from '../../queue/due-rows/fetch-loop.js';
import { DEBOUNCE_MS } from '../model/refresh-timing.js';
import { PlatformSessions } from '../refresh/platform-sessions.js';
import { RefreshNotifier } from '../refresh/refresh-notifier.js';
import { type ProcessingAnswer, type ProcessingColumns, ProcessingRepository } from './processing.repository.js';

/** Look-ups that one process has under way at most; notes are fetched in places of their own. */
const LOOK_UPS_AT_ONCE = 2;

/** Looks up which session a processing id of the platform belongs to. */
@Injectable()
export class ProcessingRefresher extends FetchLoop<ProcessingColumns, ProcessingAnswer> {
  constructor(
    processing: ProcessingRepository,
    platform: PlatformSessions,
    notifier: RefreshNotifier,
    parts: FetchParts,
  ) {
    super(
      {
        name: 'processing sessions',
        counter: {
          name: 'processing_session_fetches_total',
          help: 'Look-ups of processing ids by what they came to',
        },
        places: LOOK_UPS_AT_ONCE,
        isConfigured: () => platform.canFetchProcessingSession,
        fetch: async (row, signal) => {
          const ticket = await processing.ticketOf(row);
          const result = await platform.fetchProcessingSession(row.processing_id, signal);
          return result.kind === 'answer' ? { ...result, answer: { ...result.answer, ticket } } : result;
        },
        storeAnswer: (tx, fetched, answer) => processing.storeAnswer(tx, fetched, answer),
        storeNotFound: ({ claimed }, waitMs) => ({
          set: `fault = 'gone', failures = failures + 1, refused_at = NULL, fetched_generation = $1, due_at =
            clock_timestamp() + CASE WHEN wanted_generation > $1 THEN $2 ELSE $3 END * interval '1 millisecond'`,
          values: [claimed.wanted_generation, DEBOUNCE_MS, waitMs],
        }),
        notifyAt: (moment) => notifier.notifyAt(moment),
      },
      parts.dueRows({ name: 'processing_sessions', key: 'processing_id', lanes: [{ lane: 0 }], effectMs: 0 }),
      parts,
    );
  }
}
