import { Injectable } from '@nestjs/common';
import type { PoolClient } from 'pg';
import { allColumns, type Fields } from '../../database/columns.js';
import { DueLoopDeps } from '../../due-rows/due-loop.js';
import { PlatformClient, type ProcessingSessionAnswer } from '../../platform/clients/platform-client.js';
import { Contract } from '../../platform/contract/contract.js';
import { FetchLoop, type Outcome } from '../../platform/fetch/fetch-loop.js';
import { DEBOUNCE_MS, type FetchTicket } from '../model/apply-fetch.js';
import { SessionSeal } from '../model/session-seal.js';
import { RefreshRepository } from './refresh.repository.js';
import { SessionEventsRepository } from './session-events.repository.js';

type ProcessingRow = Fields<'ProcessingSession'>;

/** The platform's answer about a processing id. */
interface ProcessingAnswer extends ProcessingSessionAnswer {
  /** Ticket of the id's session, taken before the lookup. */
  ticket: FetchTicket;
}

/** Maximum lookups in flight per process, in addition to the fetches of sessions. */
const MAX_LOOKUPS = 2;

/** A session before the lookup: the ticket for an answer about it, and the platform's id. */
type KnownSession = FetchTicket & { sessionId: string | null };

const NO_SESSION: KnownSession = { generation: 0, answers: 0, sessionId: null };

/** Looks up the sessions of the platform's processing ids. */
@Injectable()
export class ProcessingRefresher extends FetchLoop<ProcessingRow, ProcessingAnswer> {
  constructor(
    events: SessionEventsRepository,
    refreshes: RefreshRepository,
    seal: SessionSeal,
    platform: PlatformClient,
    contract: Contract,
    deps: DueLoopDeps,
  ) {
    const knownSession = async ({ ourSessionId }: ProcessingRow): Promise<KnownSession> => {
      const { rows } = await deps.database.pool.query<KnownSession>(
        `SELECT wanted_generation - (coalesce(update_until, '-infinity') > clock_timestamp())::int AS generation, answers,
           session_id AS "sessionId" FROM sessions WHERE id = $1`,
        [ourSessionId],
      );
      return rows[0] ?? NO_SESSION;
    };
    /** Stores the raw answer, makes the session that it names due, and stores the session if it contains one. */
    const storeAnswer = async (
      tx: PoolClient,
      { processingId, wantedGeneration }: ProcessingRow,
      { raw, session, sessionId = session?.sessionId, ticket }: ProcessingAnswer,
    ): Promise<Outcome> => {
      const id = sessionId === undefined ? null : await events.recordMention(tx, sessionId);
      if (id !== null && session) await refreshes.storeAnswer(tx, id, { ticket, session });
      const isKept = id === null || !(await refreshes.isErased(tx, id));
      const fault = id === null ? 'names-no-session' : null;
      return {
        set: `session = $1, answer = $2, fetched_generation = $3, fault = $4, failures = 0,
          refused_at = NULL, updated_at = clock_timestamp(),
          due_at = CASE WHEN wanted_generation > $3 THEN clock_timestamp() + $5 * interval '1 millisecond' END`,
        values: [
          id,
          isKept ? seal.processingAnswer.seal(processingId, raw) : null,
          wantedGeneration,
          fault,
          DEBOUNCE_MS,
        ],
        afterCommit: () => deps.notifier.notify('sessions'),
      };
    };
    super(
      {
        name: 'processing sessions',
        table: {
          name: 'processing_sessions',
          columns: allColumns('ProcessingSession', 't'),
          key: 'processing_id',
          lanes: [{ lane: 0 }],
          effectMs: 0,
        },
        counter: { name: 'processing_session_fetches_total', help: 'Lookups of processing ids by outcome' },
        concurrency: MAX_LOOKUPS,
        isConfigured: () => contract.canCall('getProcessingSession'),
        fetch: async (row, signal) => {
          const { sessionId, ...ticket } = await knownSession(row);
          const options = { signal, expectedSessionId: sessionId ?? undefined };
          return { ...(await platform.getProcessingSession(row.processingId, options)), ticket };
        },
        storeAnswer: (tx, { claimed }, answer) => storeAnswer(tx, claimed, answer),
        storeNotFound: ({ claimed }, waitMs) => ({
          set: `fault = 'gone', failures = failures + 1, fetched_generation = $1, due_at =
            clock_timestamp() + CASE WHEN wanted_generation > $1 THEN $2::float8 ELSE $3 END * interval '1 millisecond'`,
          values: [claimed.wantedGeneration, DEBOUNCE_MS, waitMs],
        }),
      },
      deps,
    );
  }
}
