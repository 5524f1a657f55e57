import { Injectable } from '@nestjs/common';
import type { PoolClient } from 'pg';
import { Database } from '../../database/database.js';
import type { ProcessingSessionAnswer } from '../../platform/clients/platform-client.js';
import type { FetchColumns, Fetched, Outcome } from '../../queue/due-rows/fetch-loop.js';
import type { FetchTicket } from '../model/apply-fetch.js';
import { DEBOUNCE_MS } from '../model/refresh-timing.js';
import { SessionSeal } from '../model/session-seal.js';
import { RefreshRepository } from '../refresh/refresh.repository.js';
import { RefreshNotifier } from '../refresh/refresh-notifier.js';
import { SessionEventsRepository } from '../refresh/session-events.repository.js';
import type { NamedIds } from './processing-events.handler.js';

/** The columns of a processing session that decide on its look-up. */
export interface ProcessingColumns extends FetchColumns {
  processing_id: string;
  session: string | null;
  wanted_generation: number;
}

/** What the platform answered about a processing id. */
export interface ProcessingAnswer extends ProcessingSessionAnswer {
  /** Of the session that the id was known to belong to when it was asked for; a session without a row has no answers. */
  ticket: FetchTicket;
}

const NOTHING_KNOWN: FetchTicket = { generation: 0, answers: 0 };

/** Processing ids of the platform: which session they belong to is looked up. */
@Injectable()
export class ProcessingRepository {
  constructor(
    private readonly database: Database,
    private readonly events: SessionEventsRepository,
    private readonly refreshes: RefreshRepository,
    private readonly notifier: RefreshNotifier,
    private readonly seal: SessionSeal,
  ) {}

  /** Makes a processing session due, which is made when it is not known. */
  async recordEvent(tx: PoolClient, processingId: string): Promise<void> {
    await tx.query(
      `INSERT INTO processing_sessions (processing_id, wanted_generation, due_at)
       VALUES ($1, 1, clock_timestamp() + $2 * interval '1 millisecond')
       ON CONFLICT (processing_id) DO UPDATE SET
         wanted_generation = processing_sessions.wanted_generation + 1, updated_at = clock_timestamp(),
         due_at = CASE WHEN processing_sessions.failures > 0 AND processing_sessions.fault IS DISTINCT FROM 'gone' THEN coalesce(processing_sessions.due_at, excluded.due_at)
                       ELSE least(processing_sessions.due_at, excluded.due_at) END`,
      [processingId, DEBOUNCE_MS],
    );
  }

  /** Keeps the body of an event whose payload the spec does not show. */
  async keepNotice(
    tx: PoolClient,
    notice: { deliveryId: string; receivedAt: Date; body: unknown; ids: NamedIds },
  ): Promise<void> {
    const { deliveryId, receivedAt, ids } = notice;
    await tx.query(
      `INSERT INTO processing_notices (delivery_id, payload, processing_id, session_id, received_at)
       VALUES ($1, $2, $3, $4, $5) ON CONFLICT (delivery_id) DO NOTHING`,
      [deliveryId, this.seal.notice.seal(deliveryId, notice.body), ids.processingId, ids.sessionId, receivedAt],
    );
  }

  /** Keeps the raw answer, makes the session that it names due, and stores the session that it holds. */
  async storeAnswer(
    tx: PoolClient,
    { claimed }: Fetched<ProcessingColumns>,
    { raw, session, sessionId = session?.sessionId, ticket }: ProcessingAnswer,
  ): Promise<Outcome> {
    const id = sessionId === undefined ? null : await this.events.recordMention(tx, sessionId);
    if (id !== null && session) await this.refreshes.storeAnswer(tx, id, { ticket, session });
    return {
      set: `session = coalesce($1, session), answer = $2, fetched_generation = $3, fault = $4, failures = 0,
        refused_at = NULL, updated_at = clock_timestamp(),
        due_at = CASE WHEN wanted_generation > $3 THEN clock_timestamp() + $5 * interval '1 millisecond' END`,
      values: [
        id,
        this.seal.processingAnswer.seal(claimed.processing_id, raw),
        claimed.wanted_generation,
        id === null ? 'names-no-session' : null,
        DEBOUNCE_MS,
      ],
      afterCommit: () => this.notifier.notifySoon(),
    };
  }

  /** What is known of a processing id's session before its look-up leaves. */
  async ticketOf({ session }: ProcessingColumns): Promise<FetchTicket> {
    if (session === null) return NOTHING_KNOWN;
    const { rows } = await this.database.pool.query<FetchTicket>(
      `SELECT wanted_generation - (coalesce(update_until, '-infinity') > clock_timestamp())::int AS generation, answers
       FROM sessions WHERE id = $1`,
      [session],
    );
    return rows[0] ?? NOTHING_KNOWN;
  }
}
