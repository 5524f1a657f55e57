import { randomUUID } from 'node:crypto';
import { Injectable, Logger } from '@nestjs/common';
import { PrismaService, toBytes } from '../database/prisma.service.js';
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

/** The right of one process to run a request. */
interface Lease {
  id: string;
  leaseToken: string;
  scopeHash: Uint8Array;
}

/** Runs a request under an Idempotency-Key once, and answers its repetitions with the first answer. */
@Injectable()
export class Idempotency {
  private readonly log = new Logger(Idempotency.name);

  constructor(
    private readonly prisma: PrismaService,
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

    const renew = () => void this.extend(lease, LEASE_SECONDS).catch(() => undefined);
    const renewing = setInterval(renew, (LEASE_SECONDS / 3) * 1000);
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

  /**
   * Claims a key that is new, or whose record expired, or whose process died during the same request, which keeps its id.
   *
   * @returns undefined if the request runs or has an answer
   */
  private async claim({ scope, compared }: KeyedRequest): Promise<Lease | undefined> {
    const scopeHash = toBytes(this.fingerprints.of(SCOPE, scope));
    const requestHash = this.fingerprints.of(REQUEST, compared);
    const leaseToken = randomUUID();
    const [claimed] = await this.prisma.$queryRaw<{ id: string }[]>`
      INSERT INTO idempotency_records AS kept (id, scope_hash, request_hash, lease_token, lease_until, expires_at)
      VALUES (${randomUUID()}::uuid, ${scopeHash}, ${requestHash}, ${leaseToken}::uuid,
        now() + make_interval(secs => ${LEASE_SECONDS}), now() + make_interval(hours => ${KEPT_HOURS}))
      ON CONFLICT (scope_hash) DO UPDATE SET
        id = CASE WHEN kept.expires_at <= now() THEN excluded.id ELSE kept.id END,
        expires_at = CASE WHEN kept.expires_at <= now() THEN excluded.expires_at ELSE kept.expires_at END,
        request_hash = excluded.request_hash, status = NULL, headers = NULL, body = NULL,
        lease_token = excluded.lease_token, lease_until = excluded.lease_until
      WHERE kept.expires_at <= now() OR (
        kept.status IS NULL AND kept.lease_until <= now() AND kept.request_hash = excluded.request_hash)
      RETURNING id`;
    return claimed && { id: claimed.id, leaseToken, scopeHash };
  }

  private async replay(request: KeyedRequest): Promise<KeptAnswer> {
    const scopeHash = toBytes(this.fingerprints.of(SCOPE, request.scope));
    const row = await this.prisma.idempotencyRecord.findUnique({ where: { scopeHash } });
    if (row && !this.fingerprints.matches(REQUEST, request.compared, row.requestHash)) throw reused();
    if (!row || row.status === null) throw inProgress();
    const json = row.body && this.vault.open(bodyOf(row), row.body);
    const headers = (row.headers ?? {}) as KeptAnswer['headers'];
    return { status: row.status, headers, value: json ? JSON.parse(json) : undefined };
  }

  /** Stores the answer, unless the lease was lost. */
  private async keep(lease: Lease, { status, headers, value }: KeptAnswer): Promise<void> {
    const json = JSON.stringify(value) as string | undefined;
    const body = json === undefined ? null : toBytes(this.vault.seal(bodyOf(lease), json));
    await this.prisma.idempotencyRecord.updateMany({ where: underLease(lease), data: { status, headers, body } });
  }

  /** A rejected request had no effect, and may be corrected under the same key. After a fault it may run again. */
  private async end(lease: Lease, error: unknown): Promise<void> {
    if ((problemOf(error)?.status ?? 500) >= 500) await this.extend(lease, 0);
    else await this.prisma.idempotencyRecord.deleteMany({ where: underLease(lease) });
  }

  private async extend({ id, leaseToken }: Lease, seconds: number): Promise<void> {
    await this.prisma.$executeRaw`
      UPDATE idempotency_records SET lease_until = now() + make_interval(secs => ${seconds})
      WHERE id = ${id}::uuid AND lease_token = ${leaseToken}::uuid`;
  }

  private complain(error: unknown): void {
    this.log.error({ msg: 'an idempotency record could not be written', ...errorTrace(error) });
  }
}

const underLease = ({ id, leaseToken }: Lease) => ({ id, leaseToken });

/** Bound to the request and its key, so that no caller gets the answer of another. */
function bodyOf({ id, scopeHash }: Pick<Lease, 'id' | 'scopeHash'>): SealedPlace {
  const row = `${id}/${Buffer.from(scopeHash).toString('hex')}`;
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
