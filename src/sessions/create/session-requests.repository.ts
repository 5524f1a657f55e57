import { Injectable } from '@nestjs/common';
import type { PoolClient } from 'pg';
import { Env } from '../../config/env.js';
import { Database } from '../../database/database.js';
import type { CreateTherapySessionRequest } from '../../platform/contract/wire-types.js';
import type { Lease } from '../../queue/due-rows/lease.js';
import { WorkerProcess } from '../../queue/due-rows/worker-process.js';
import { Outbox } from '../../queue/outbox/outbox.js';
import { shownAppointment } from '../model/correlation-id.js';
import { SessionSeal } from '../model/session-seal.js';
import type { InputKind } from './create-request.js';

/** Milliseconds beyond the platform's timeout in which an attempt must have left and stored its outcome. */
const ATTEMPT_MARGIN_MS = 10_000;

/**
 * Where a request stands.
 *
 * - `Requested`: to be sent, or on its way.
 * - `Unknown`: sent, and no answer says whether the platform took it.
 * - `Settled`: the platform's id is known.
 * - `Rejected`: the platform has certainly not taken it.
 * - `Abandoned`: a person said that nothing more is to be done.
 */
export type RequestState = 'Requested' | 'Unknown' | 'Settled' | 'Rejected' | 'Abandoned';

/** A request as it is to be kept. */
interface NewRequest {
  /** Our id of the session. */
  id: string;
  body: CreateTherapySessionRequest;
  inputKind: InputKind;
}

/** A request that still stands in the way of another for the same appointment and provider. */
export interface OpenRequest {
  session: string;
  state: RequestState;
}

/** The columns of a request that decide on what is sent, and on what its outcome means. */
export interface RequestColumns {
  session: string;
  state: RequestState;
  /** Sealed; there while the request is open. */
  body: Buffer;
  failures: number;
  /** The platform's sessions that events named and that fit this request alone. */
  evidence: string[];
  /** What became of an attempt before this one was never known: it may have made a session, too. */
  earlier_unknown: boolean;
}

/** How many requests are open, and why. */
interface Standing {
  /** They wait for a manual decision. */
  unknown: number;
  /** The platform refused the key. */
  refused: number;
  /** Not taken for five minutes. */
  overdue: number;
}

/** The sessions that the EHR asked for: intents, and the attempts to send them. */
@Injectable()
export class SessionRequestsRepository {
  readonly outbox: Outbox<RequestColumns>;

  constructor(
    private readonly database: Database,
    private readonly seal: SessionSeal,
    worker: WorkerProcess,
    env: Env,
  ) {
    const effectMs = env.PLATFORM_TIMEOUT_SECONDS * 1_000 + ATTEMPT_MARGIN_MS;
    const table = { name: 'session_requests', key: 'session', mark: 'attempted_at', effectMs };
    this.outbox = new Outbox(table, database, worker);
  }

  async state(session: string, tx: Pick<PoolClient, 'query'> = this.database.pool): Promise<RequestState | undefined> {
    const { rows } = await tx.query<{ state: RequestState }>('SELECT state FROM session_requests WHERE session = $1', [
      session,
    ]);
    return rows[0]?.state;
  }

  /** Of which kind a session's input is; undefined when it was not asked for here. */
  async inputKind(session: string): Promise<InputKind | undefined> {
    const { rows } = await this.database.pool.query<{ kind: InputKind }>(
      'SELECT input_kind AS kind FROM session_requests WHERE session = $1',
      [session],
    );
    return rows[0]?.kind;
  }

  /**
   * Keeps an intent with the row that shows it.
   *
   * @returns the open request that stands in its way; undefined when it is kept, or was by an earlier run
   */
  async keep(tx: PoolClient, { id, body, inputKind }: NewRequest): Promise<OpenRequest | undefined> {
    while (!(await this.insert(tx, { id, body, inputKind }))) {
      if ((await this.state(id, tx)) !== undefined) return undefined;
      const open = await this.inTheWay(tx, body);
      if (open) return open;
      // It was settled between the two looks, so the way is free.
    }
    return undefined;
  }

  /** @returns false when it is there already, or another stands in its way */
  private async insert(tx: PoolClient, { id, body, inputKind }: NewRequest): Promise<boolean> {
    const { rowCount } = await tx.query(
      `WITH kept AS (
         INSERT INTO session_requests (session, state, provider_user_id, correlation_id, input_kind, body, requested_at,
           due_at, earlier_unknown)
         VALUES ($1, 'Requested', $2, $3, $4, $5, clock_timestamp(), clock_timestamp(), EXISTS (
           SELECT 1 FROM session_requests WHERE correlation_id = $3 AND provider_user_id = $2 AND state = 'Abandoned'
             AND attempted_at IS NOT NULL)) ON CONFLICT DO NOTHING RETURNING session)
       INSERT INTO sessions (id, state, provider_user_id, client_user_ids, note_template_ids, partner_appointment_id,
         date)
       SELECT session, 'Requested', $2, $6::text[], $7::text[], $8, $9 FROM kept`,
      [
        id,
        body.providerUserId,
        body.partnerAppointmentId,
        inputKind,
        this.seal.request.seal(id, body),
        body.clientUserId === undefined ? [] : [body.clientUserId],
        'noteTemplateIds' in body ? body.noteTemplateIds : [],
        shownAppointment(body.partnerAppointmentId),
        body.date ?? null,
      ],
    );
    return rowCount !== 0;
  }

  /** Stores that an attempt has certainly done nothing, and when the next may leave. */
  async putOff(attempt: Lease, fault: string, waitMs: number): Promise<void> {
    await this.database.transaction(async (tx) => {
      if (!(await this.outbox.lock(tx, attempt))) return;
      await this.outbox.putOff(tx, attempt, fault, waitMs);
      await showRequested(tx, attempt.key);
    });
  }

  /** Makes an unknown request due once more, manually. @returns false when it is not unknown */
  async sendAgain(session: string): Promise<boolean> {
    return this.database.transaction(async (tx) => {
      const { rowCount } = await tx.query(
        `UPDATE session_requests SET state = 'Requested', attempted_at = NULL, lease_no = lease_no + 1,
           earlier_unknown = true, fault = NULL, failures = 0, due_at = clock_timestamp()
         WHERE session = $1 AND state = 'Unknown'`,
        [session],
      );
      if (rowCount !== 0) await showRequested(tx, session);
      return rowCount !== 0;
    });
  }

  /** Counts the requests that are open and should not be for long. */
  async standing(): Promise<Standing> {
    const { rows } = await this.database.pool.query<Standing>(
      `SELECT count(*) FILTER (WHERE state = 'Unknown')::int AS unknown,
         count(*) FILTER (WHERE state = 'Requested' AND fault = 'unauthorized')::int AS refused,
         count(*) FILTER (WHERE state = 'Requested'
           AND requested_at < now() - interval '5 minutes')::int AS overdue
       FROM session_requests WHERE state IN ('Requested', 'Unknown')`,
    );
    return rows[0] ?? { unknown: 0, refused: 0, overdue: 0 };
  }

  private async inTheWay(
    tx: PoolClient,
    { partnerAppointmentId, providerUserId }: CreateTherapySessionRequest,
  ): Promise<OpenRequest | undefined> {
    const { rows } = await tx.query<OpenRequest>(
      `SELECT session, state FROM session_requests
       WHERE correlation_id = $1 AND provider_user_id = $2 AND state IN ('Requested', 'Unknown')`,
      [partnerAppointmentId, providerUserId],
    );
    return rows[0];
  }
}

async function showRequested(tx: PoolClient, session: string): Promise<void> {
  await tx.query(`UPDATE sessions SET state = 'Requested', updated_at = clock_timestamp() WHERE id = $1`, [session]);
}
