import { Injectable } from '@nestjs/common';
import type { PoolClient } from 'pg';
import { Database } from '../database/database.js';
import type { ProcessingSessionAnswer } from '../platform/sessions-client.js';
import type { FetchTicket } from './apply-fetch.js';
import type { FetchFault, FetchTurn } from './fetch-loop.js';
import { HeardRepository } from './heard.repository.js';
import type { NamedIds } from './processing-notice.js';
import { RefreshRepository } from './refresh.repository.js';
import { LEASE_MS, SETTLE_MS } from './refresh-timing.js';
import { SessionSeal } from './session-seal.js';

/** A processing session whose turn it is. */
export interface ProcessingTurn extends FetchTurn {
  processingId: string;
  leaseToken: string;
  generation: number;
  /** Of the session that it is known to belong to; one that nothing is known of has no answers. */
  ticket: FetchTicket;
}

/** Processing ids of the platform: which session they belong to is looked up. */
@Injectable()
export class ProcessingRepository {
  constructor(
    private readonly database: Database,
    private readonly heard: HeardRepository,
    private readonly refreshes: RefreshRepository,
    private readonly seal: SessionSeal,
  ) {}

  /** Makes a processing session due, which is made when it is not known. */
  async hear(tx: PoolClient, processingId: string): Promise<void> {
    await tx.query(
      `INSERT INTO processing_sessions (processing_id, wanted_generation, due_at)
       VALUES ($1, 1, clock_timestamp() + $2 * interval '1 millisecond')
       ON CONFLICT (processing_id) DO UPDATE SET
         wanted_generation = processing_sessions.wanted_generation + 1, updated_at = clock_timestamp(),
         due_at = CASE WHEN processing_sessions.strikes > 0 THEN coalesce(processing_sessions.due_at, excluded.due_at)
                       ELSE least(processing_sessions.due_at, excluded.due_at) END`,
      [processingId, SETTLE_MS],
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
      [deliveryId, this.seal.sealNotice(deliveryId, notice.body), ids.processingId, ids.sessionId, receivedAt],
    );
  }

  async takeTurn(): Promise<ProcessingTurn | undefined> {
    const { rows } = await this.database.pool.query<{
      processing_id: string;
      lease_token: string;
      wanted_generation: number;
      strikes: number;
      refused_at: Date | null;
      session_generation: number | null;
      answers: number | null;
    }>(
      `WITH taken AS (
         UPDATE processing_sessions SET lease_token = gen_random_uuid(),
           lease_until = clock_timestamp() + $1 * interval '1 millisecond'
         WHERE processing_id = (
           SELECT processing_id FROM processing_sessions
           WHERE due_at <= clock_timestamp() AND (lease_until IS NULL OR lease_until < clock_timestamp())
           ORDER BY due_at LIMIT 1 FOR UPDATE SKIP LOCKED)
         RETURNING *)
       SELECT taken.processing_id, taken.lease_token, taken.wanted_generation, taken.strikes, taken.refused_at,
         sessions.wanted_generation - (coalesce(sessions.update_until, '-infinity') > clock_timestamp())::int
           AS session_generation, sessions.answers
       FROM taken LEFT JOIN sessions ON sessions.id = taken.session`,
      [LEASE_MS],
    );
    const [row] = rows;
    return (
      row && {
        processingId: row.processing_id,
        leaseToken: row.lease_token,
        generation: row.wanted_generation,
        strikes: row.strikes,
        refusedAt: row.refused_at,
        ticket: { generation: row.session_generation ?? 0, answers: row.answers ?? 0 },
      }
    );
  }

  async nextDueAt(): Promise<Date | undefined> {
    const { rows } = await this.database.pool.query<{ due_at: Date | null }>(
      `SELECT min(due_at) AS due_at FROM processing_sessions
       WHERE lease_until IS NULL OR lease_until < clock_timestamp()`,
    );
    return rows[0]?.due_at ?? undefined;
  }

  /** Keeps the raw answer, makes the session that it names due, and stores the session that it holds. */
  async storeAnswer(tx: PoolClient, turn: ProcessingTurn, answer: ProcessingSessionAnswer): Promise<void> {
    const sessionId = answer.sessionId ?? answer.session?.sessionId;
    const id = sessionId === undefined ? null : await this.heard.hearOf(tx, sessionId);
    if (id !== null && answer.session) {
      await this.refreshes.storeAnswer(tx, id, { ticket: turn.ticket, session: answer.session });
    }
    await tx.query(
      `UPDATE processing_sessions SET session = coalesce($2, session), answer = $3, fetched_generation = $4, fault = $5,
         strikes = 0, refused_at = NULL, lease_token = NULL, lease_until = NULL, updated_at = clock_timestamp(),
         due_at = CASE WHEN wanted_generation > $4 THEN clock_timestamp() + $6 * interval '1 millisecond' END
       WHERE processing_id = $1`,
      [
        turn.processingId,
        id,
        this.seal.sealProcessingAnswer(turn.processingId, answer.raw),
        turn.generation,
        id === null ? 'names-no-session' : null,
        SETTLE_MS,
      ],
    );
  }

  /** Stores that the platform does not know a processing id; the next event about it makes another look-up. */
  async storeGone({ processingId, leaseToken, generation }: ProcessingTurn): Promise<void> {
    await this.database.pool.query(
      `UPDATE processing_sessions SET fault = 'gone', strikes = 0, refused_at = NULL, fetched_generation = $3,
         lease_token = NULL, lease_until = NULL,
         due_at = CASE WHEN wanted_generation > $3 THEN clock_timestamp() + $4 * interval '1 millisecond' END
       WHERE processing_id = $1 AND lease_token = $2`,
      [processingId, leaseToken, generation, SETTLE_MS],
    );
  }

  async storeFault({ processingId, leaseToken }: ProcessingTurn, { code, waitMs, strike }: FetchFault): Promise<void> {
    await this.database.pool.query(
      `UPDATE processing_sessions SET fault = $3, strikes = strikes + $4, lease_token = NULL, lease_until = NULL,
         refused_at = CASE WHEN $3 = 'platform-unauthorized' THEN clock_timestamp() ELSE refused_at END,
         due_at = clock_timestamp() + $5 * interval '1 millisecond'
       WHERE processing_id = $1 AND lease_token = $2`,
      [processingId, leaseToken, code, strike ? 1 : 0, waitMs],
    );
  }
}
