import { Injectable } from '@nestjs/common';
import type { PoolClient } from 'pg';
import { Database } from '../../database/database.js';
import type { ProcessingSessionAnswer } from '../../platform/clients/sessions-client.js';
import { DueRows } from '../../queue/due-rows/due-rows.js';
import type { Lease } from '../../queue/due-rows/lease.js';
import { WorkerProcess } from '../../queue/due-rows/worker-process.js';
import type { FetchTicket } from '../model/apply-fetch.js';
import { SETTLE_MS } from '../model/refresh-timing.js';
import { SessionSeal } from '../model/session-seal.js';
import type { FetchClaim, FetchFault } from '../refresh/fetch-loop.js';
import { RefreshRepository } from '../refresh/refresh.repository.js';
import { SessionEventsRepository } from '../refresh/session-events.repository.js';
import { storeFault } from '../refresh/store-fault.js';
import type { NamedIds } from './processing-notice.js';

/** A processing session whose turn it is. */
export interface ProcessingClaim extends FetchClaim {
  processingId: string;
  lease: Lease;
  generation: number;
  /** Of the session that it is known to belong to; one that nothing is known of has no answers. */
  ticket: FetchTicket;
}

/** The columns of a processing session that decide on its turn. */
interface ProcessingColumns {
  processing_id: string;
  session: string | null;
  wanted_generation: number;
  failures: number;
  refused_at: Date | null;
}

const NOTHING_KNOWN: FetchTicket = { generation: 0, answers: 0 };

/** Processing ids of the platform: which session they belong to is looked up. */
@Injectable()
export class ProcessingRepository {
  private readonly due: DueRows<ProcessingColumns>;

  constructor(
    private readonly database: Database,
    private readonly heard: SessionEventsRepository,
    private readonly refreshes: RefreshRepository,
    private readonly seal: SessionSeal,
    worker: WorkerProcess,
  ) {
    const table = { name: 'processing_sessions', key: 'processing_id', lanes: [{ lane: 0 }], effectMs: 0 };
    this.due = new DueRows(table, database, worker);
  }

  /** Makes a processing session due, which is made when it is not known. */
  async hear(tx: PoolClient, processingId: string): Promise<void> {
    await tx.query(
      `INSERT INTO processing_sessions (processing_id, wanted_generation, due_at)
       VALUES ($1, 1, clock_timestamp() + $2 * interval '1 millisecond')
       ON CONFLICT (processing_id) DO UPDATE SET
         wanted_generation = processing_sessions.wanted_generation + 1, updated_at = clock_timestamp(),
         due_at = CASE WHEN processing_sessions.failures > 0 AND processing_sessions.fault IS DISTINCT FROM 'gone' THEN coalesce(processing_sessions.due_at, excluded.due_at)
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

  /** Leases the processing session that is due for longest, or answers undefined. */
  async claimNext(): Promise<ProcessingClaim | undefined> {
    const leased = await this.due.claim();
    if (!leased) return undefined;
    const { lease, row } = leased;
    return {
      processingId: row.processing_id,
      lease,
      generation: row.wanted_generation,
      failures: row.failures,
      refusedAt: row.refused_at,
      ticket: row.session === null ? NOTHING_KNOWN : await this.ticketOf(row.session),
    };
  }

  /** The turn has ended, however it did. */
  endClaim({ lease }: ProcessingClaim): void {
    this.due.done(lease);
  }

  /** When the next one is due that nobody works on; undefined when none is. */
  nextDueAt(): Promise<Date | undefined> {
    return this.due.nextDueAt();
  }

  /**
   * Keeps the raw answer, makes the session that it names due, and stores the session that it holds.
   *
   * @returns false when the turn is another's by now: nothing is stored
   */
  async storeAnswer(tx: PoolClient, turn: ProcessingClaim, answer: ProcessingSessionAnswer): Promise<boolean> {
    if (!(await this.due.lock(tx, turn.lease))) return false;
    const sessionId = answer.sessionId ?? answer.session?.sessionId;
    const id = sessionId === undefined ? null : await this.heard.hearOf(tx, sessionId);
    if (id !== null && answer.session) {
      await this.refreshes.storeAnswer(tx, id, { ticket: turn.ticket, session: answer.session });
    }
    return this.due.settle(tx, turn.lease, {
      set: `session = coalesce($1, session), answer = $2, fetched_generation = $3, fault = $4, failures = 0,
        refused_at = NULL, updated_at = clock_timestamp(),
        due_at = CASE WHEN wanted_generation > $3 THEN clock_timestamp() + $5 * interval '1 millisecond' END`,
      values: [
        id,
        this.seal.sealProcessingAnswer(turn.processingId, answer.raw),
        turn.generation,
        id === null ? 'names-no-session' : null,
        SETTLE_MS,
      ],
    });
  }

  /** Stores that the platform does not know a processing id now; it is asked for again. */
  async storeGone({ lease, generation }: ProcessingClaim, waitMs: number): Promise<void> {
    await this.due.settle(this.database.pool, lease, {
      set: `fault = 'gone', failures = failures + 1, refused_at = NULL, fetched_generation = $1,
        due_at = clock_timestamp() + CASE WHEN wanted_generation > $1 THEN $2 ELSE $3 END * interval '1 millisecond'`,
      values: [generation, SETTLE_MS, waitMs],
    });
  }

  /** Stores that a look-up failed and when the next may leave. */
  async storeFault({ lease }: ProcessingClaim, fault: FetchFault): Promise<void> {
    await this.due.settle(this.database.pool, lease, storeFault(fault));
  }

  /** What is known of a session before its look-up leaves. */
  private async ticketOf(session: string): Promise<FetchTicket> {
    const { rows } = await this.database.pool.query<FetchTicket>(
      `SELECT wanted_generation - (coalesce(update_until, '-infinity') > clock_timestamp())::int AS generation, answers
       FROM sessions WHERE id = $1`,
      [session],
    );
    return rows[0] ?? NOTHING_KNOWN;
  }
}
