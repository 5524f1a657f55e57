import { createHash, randomUUID } from 'node:crypto';
import { Injectable, Logger } from '@nestjs/common';
import type { Pool, PoolClient } from 'pg';
import { Database } from '../database/database.js';
import { errorTrace } from '../errors/error-trace.js';
import { problemOf } from '../http/problem/fault.js';
import { Problem } from '../http/problem/problem.js';
import { Fingerprints } from '../vault/fingerprints.js';
import { type SealedPlace, Vault } from '../vault/vault.js';

/** How long a running request keeps its key. Renewed while it runs, so a crashed process blocks the key no longer. */
const LEASE_SECONDS = 14;

/** How long an answer can be replayed. */
const KEPT_HOURS = 24;

/** Purposes of the fingerprints. */
const SCOPE = 'idempotency-scope';
const REQUEST = 'idempotency-request';

/** A request that carries an Idempotency-Key. */
export interface KeyedRequest {
  /** The caller, the route and the key. */
  scope: string;
  /** The text that is equal in repetitions of the request. */
  compared: string;
}

/** An answer as it is kept and replayed. */
interface KeptAnswer {
  status: number;
  headers: Record<string, string>;
  value: unknown;
}

/** The stored record of a request. Hashes are keyed fingerprints. */
interface Row {
  id: string;
  scopeHash: Buffer;
  requestHash: Buffer;
  /** null: still running, or its process died. */
  status: number | null;
  headers: Record<string, string> | null;
  /** Sealed. */
  body: Buffer | null;
}

/** The right of one process to run a request. */
interface Lease {
  id: string;
  token: string;
  scopeHash: Buffer;
}

/** The key is new, its record expired, or the process that ran the same request died (its id stays the same then). */
const CLAIM = `
  INSERT INTO idempotency_records AS kept (id, scope_hash, request_hash, lease_token, lease_until, expires_at)
  VALUES ($1, $2, $3, $4, now() + make_interval(secs => ${LEASE_SECONDS}), now() + make_interval(hours => ${KEPT_HOURS}))
  ON CONFLICT (scope_hash) DO UPDATE SET
    id = CASE WHEN kept.expires_at <= now() THEN excluded.id ELSE kept.id END,
    expires_at = CASE WHEN kept.expires_at <= now() THEN excluded.expires_at ELSE kept.expires_at END,
    request_hash = excluded.request_hash, status = NULL, headers = NULL, body = NULL,
    lease_token = excluded.lease_token, lease_until = excluded.lease_until
  WHERE kept.expires_at <= now() OR (
    kept.status IS NULL AND kept.lease_until <= now() AND kept.request_hash = ANY ($5::bytea[]))
  RETURNING id, scope_hash AS "scopeHash"`;

/** Runs a request under an Idempotency-Key once, and answers its repetitions with the first answer. */
@Injectable()
export class Idempotency {
  private readonly log = new Logger(Idempotency.name);

  constructor(
    private readonly database: Database,
    private readonly vault: Vault,
    private readonly fingerprints: Fingerprints,
  ) {}

  /**
   * @param run runs the request, perhaps again after a crash or a fault; it must create at most one resource with the
   *   given id
   * @returns the answer; `replayed` is true if it is an earlier one
   * @throws {Problem} 409 `idempotency-in-progress`, 422 `idempotency-key-reused`, or any error of `run`
   */
  async once(
    request: KeyedRequest,
    run: (creationId: string) => Promise<KeptAnswer>,
  ): Promise<{ answer: KeptAnswer; replayed: boolean }> {
    const lease = await this.claim(request);
    if (!lease) return { answer: await this.replay(request), replayed: true };

    const renew = () => this.update(lease, `lease_until = now() + make_interval(secs => ${LEASE_SECONDS})`);
    const renewing = setInterval(() => void renew().catch(() => undefined), (LEASE_SECONDS / 3) * 1000);
    try {
      const answer = await run(lease.id);
      await this.keep(lease, answer).catch((error: unknown) => this.complain(error));
      return { answer, replayed: false };
    } catch (error) {
      await this.end(lease, error).catch((fault: unknown) => this.complain(fault));
      throw error;
    } finally {
      clearInterval(renewing);
    }
  }

  /** @returns undefined if the request runs or has an answer */
  private async claim({ scope, compared }: KeyedRequest): Promise<Lease | undefined> {
    const scopes = this.fingerprints.all(SCOPE, scope);
    const requests = this.fingerprints.all(REQUEST, compared);
    const token = randomUUID();
    const claimAs = async (sql: Pick<Pool, 'query'>, scopeHash: Buffer | undefined) => {
      const { rows } = await sql.query<{ id: string; scopeHash: Buffer }>(CLAIM, [
        ...[randomUUID(), scopeHash, requests[0], token, requests],
      ]);
      return rows[0] && { ...rows[0], token };
    };
    if (scopes.length === 1) return claimAs(this.database.pool, scopes[0]);
    // Processes with different first keys make different hashes of one scope, which no index keeps unique.
    return this.database.transaction(async (tx) => {
      await tx.query('SELECT pg_advisory_xact_lock($1)', [
        createHash('sha256').update(scope).digest().readBigInt64BE(),
      ]);
      return claimAs(tx, (await this.find(tx, scopes))?.scopeHash ?? scopes[0]);
    });
  }

  private async find(sql: Pick<Pool | PoolClient, 'query'>, scopes: readonly Buffer[]): Promise<Row | undefined> {
    const { rows } = await sql.query<Row>(
      `SELECT id, scope_hash AS "scopeHash", request_hash AS "requestHash", status, headers, body
       FROM idempotency_records WHERE scope_hash = ANY ($1::bytea[])`,
      [scopes],
    );
    return rows[0];
  }

  private async replay({ scope, compared }: KeyedRequest): Promise<KeptAnswer> {
    const row = await this.find(this.database.pool, this.fingerprints.all(SCOPE, scope));
    if (row && !this.fingerprints.matches(REQUEST, compared, row.requestHash)) throw reused();
    if (!row || row.status === null) throw inProgress();
    const json = row.body && this.vault.open(bodyOf(row), row.body);
    return { status: row.status, headers: row.headers ?? {}, value: json ? JSON.parse(json) : undefined };
  }

  /** Stores the answer, unless the lease was lost. */
  private async keep(lease: Lease, { status, headers, value }: KeptAnswer): Promise<void> {
    const json = JSON.stringify(value) as string | undefined;
    await this.update(
      lease,
      'status = $3, headers = $4, body = $5',
      status,
      JSON.stringify(headers),
      json === undefined ? null : this.vault.seal(bodyOf(lease), json),
    );
  }

  /** A rejected request had no effect, and may be corrected under the same key. After a fault it may run again. */
  private async end(lease: Lease, error: unknown): Promise<void> {
    if ((problemOf(error)?.status ?? 500) >= 500) return this.update(lease, 'lease_until = now()');
    const forget = 'DELETE FROM idempotency_records WHERE id = $1 AND lease_token = $2';
    await this.database.pool.query(forget, [lease.id, lease.token]);
  }

  /** @param set assignments, whose parameters count from $3 */
  private async update({ id, token }: Lease, set: string, ...values: unknown[]): Promise<void> {
    const text = `UPDATE idempotency_records SET ${set} WHERE id = $1 AND lease_token = $2`;
    await this.database.pool.query(text, [id, token, ...values]);
  }

  private complain(error: unknown): void {
    this.log.error({ msg: 'an idempotency record could not be written', ...errorTrace(error) });
  }
}

/** Bound to the request and its key, so that no caller gets the answer of another. */
function bodyOf({ id, scopeHash }: Pick<Lease, 'id' | 'scopeHash'>): SealedPlace {
  const row = `${id}/${scopeHash.toString('hex')}`;
  return { table: 'idempotency_records', column: 'body', row };
}

function reused(): Problem {
  const detail = 'This Idempotency-Key was used for another request. Use a new key for each request.';
  return new Problem('idempotency-key-reused', detail);
}

function inProgress(): Problem {
  const detail = 'The first request with this Idempotency-Key is still running. Retry later.';
  return new Problem('idempotency-in-progress', detail, { retryAfterSeconds: 1 });
}
