import { Injectable } from '@nestjs/common';
import { Database } from '../../database/database.js';

/** A request under an Idempotency-Key. Hashes are keyed fingerprints. */
export interface IdempotencyClaim {
  id: string;
  scopeHash: Buffer;
  /** null: a stream, not read yet. */
  requestHash: Buffer | null;
  leaseToken: string;
}

/** What is kept of a request under an Idempotency-Key. */
export interface IdempotencyRow {
  id: string;
  requestHash: Buffer | null;
  /** null: still running, or its process died. */
  status: number | null;
  headers: Record<string, string> | null;
  body: Buffer | null;
}

@Injectable()
export class IdempotencyRepository {
  constructor(private readonly database: Database) {}

  /**
   * Claims the right to run a request: when the key is new, its record expired, or the process that ran the same request
   * died (its id stays the same then).
   *
   * @returns the record's id, or undefined when the key is taken
   */
  async claim(claim: IdempotencyClaim, leaseSeconds: number, keepHours: number): Promise<string | undefined> {
    const { rows } = await this.database.pool.query<{ id: string }>(
      `INSERT INTO idempotency_records AS kept (id, scope_hash, request_hash, lease_token, lease_until, expires_at)
       VALUES ($1, $2, $3, $4, now() + make_interval(secs => $5), now() + make_interval(hours => $6))
       ON CONFLICT (scope_hash) DO UPDATE SET
         id = CASE WHEN kept.expires_at <= now() THEN excluded.id ELSE kept.id END,
         expires_at = CASE WHEN kept.expires_at <= now() THEN excluded.expires_at ELSE kept.expires_at END,
         request_hash = excluded.request_hash, status = NULL, headers = NULL, body = NULL,
         lease_token = excluded.lease_token, lease_until = excluded.lease_until
       WHERE kept.expires_at <= now() OR (
         kept.status IS NULL AND kept.lease_until <= now()
         AND COALESCE(kept.request_hash = excluded.request_hash, true))
       RETURNING id`,
      [claim.id, claim.scopeHash, claim.requestHash, claim.leaseToken, leaseSeconds, keepHours],
    );
    return rows[0]?.id;
  }

  async find(scopeHash: Buffer): Promise<IdempotencyRow | undefined> {
    const { rows } = await this.database.pool.query<IdempotencyRow>(
      `SELECT id, request_hash AS "requestHash", status, headers, body FROM idempotency_records WHERE scope_hash = $1`,
      [scopeHash],
    );
    return rows[0];
  }

  /** Extends the lease, unless it was lost. */
  async renew(id: string, leaseToken: string, leaseSeconds: number): Promise<void> {
    await this.database.pool.query(
      `UPDATE idempotency_records SET lease_until = now() + make_interval(secs => $3)
       WHERE id = $1 AND lease_token = $2 AND status IS NULL`,
      [id, leaseToken, leaseSeconds],
    );
  }

  /** Stores the answer, unless the lease was lost. @param body sealed */
  async keep(leaseToken: string, row: IdempotencyRow): Promise<void> {
    await this.database.pool.query(
      `UPDATE idempotency_records SET status = $3, headers = $4, body = $5, request_hash = $6
       WHERE id = $1 AND lease_token = $2`,
      [row.id, leaseToken, row.status, JSON.stringify(row.headers), row.body, row.requestHash],
    );
  }

  /** Forgets a request that had no effect. */
  async forget(id: string, leaseToken: string): Promise<void> {
    await this.database.pool.query(`DELETE FROM idempotency_records WHERE id = $1 AND lease_token = $2`, [
      id,
      leaseToken,
    ]);
  }

  /** Lets the next attempt run at once, under the same id, for this one may have had an effect. */
  async release(id: string, leaseToken: string): Promise<void> {
    await this.database.pool.query(
      `UPDATE idempotency_records SET lease_until = now() WHERE id = $1 AND lease_token = $2`,
      [id, leaseToken],
    );
  }

  /** Deletes what expired. @returns how many */
  async deleteExpired(): Promise<number> {
    const { rowCount } = await this.database.pool.query(`DELETE FROM idempotency_records WHERE expires_at <= now()`);
    return rowCount ?? 0;
  }
}
