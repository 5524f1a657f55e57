import { Injectable } from '@nestjs/common';
import { Clock } from '../../config/clock.js';
import { Random } from '../../config/random.js';
import { Database } from '../../database/database.js';
import { Metrics } from '../../http/server/metrics.js';
import type { ProcessingSessionAnswer } from '../../platform/clients/sessions-client.js';
import { WorkerProcess } from '../../queue/due-rows/worker-process.js';
import { FetchLoop } from '../refresh/fetch-loop.js';
import { PlatformSessions } from '../refresh/platform-sessions.js';
import { RefreshNotifier } from '../refresh/refresh-notifier.js';
import { type ProcessingClaim, ProcessingRepository } from './processing.repository.js';

/** Look-ups that one process has under way at most; notes are fetched in places of their own. */
const LOOK_UPS_AT_ONCE = 2;

/** Looks up which session a processing id of the platform belongs to. */
@Injectable()
export class ProcessingRefresher extends FetchLoop<ProcessingClaim, ProcessingSessionAnswer> {
  constructor(
    processing: ProcessingRepository,
    platform: PlatformSessions,
    database: Database,
    notifier: RefreshNotifier,
    worker: WorkerProcess,
    clock: Clock,
    random: Random,
    metrics: Metrics,
  ) {
    const fetches = metrics.counter(
      'processing_session_fetches_total',
      'Look-ups of processing ids by what they came to',
      ['outcome'],
    );
    super(
      {
        name: 'processing sessions',
        isConfigured: () => platform.canFetchProcessingSession,
        places: LOOK_UPS_AT_ONCE,
        mayWork: () => worker.mayWork(),
        claimNext: () => processing.claimNext(),
        endClaim: (turn) => processing.endClaim(turn),
        nextDueAt: () => processing.nextDueAt(),
        fetch: (turn, signal) => platform.fetchProcessingSession(turn.processingId, signal),
        keepAnswer: async (turn, answer) => {
          if (await database.transaction((tx) => processing.storeAnswer(tx, turn, answer))) notifier.notifySoon();
        },
        recordNotFound: (turn, waitMs) => processing.storeGone(turn, waitMs),
        keepFault: (turn, fault) => processing.storeFault(turn, fault),
        notifyAt: (moment) => notifier.notifyAt(moment),
        count: (outcome) => fetches.inc({ outcome }),
      },
      clock,
      random,
    );
  }
}
