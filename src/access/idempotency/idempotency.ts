import { randomUUID } from 'node:crypto';
import { Injectable, Logger, type OnModuleInit } from '@nestjs/common';
import { errorTrace } from '../../http/problem/error-trace.js';
import { problemOf } from '../../http/problem/fault.js';
import { Problem } from '../../http/problem/problem.js';
import { Poller } from '../../queue/notifier/poller.js';
import { Vault } from '../../vault/vault.js';
import { IdempotencyRepository, type IdempotencyRow } from './idempotency.repository.js';

/** Seconds for which a running request keeps its key; renewed while it runs, so a dead process blocks no longer. */
const LEASE_SECONDS = 14;

/** Hours for which an answer can be replayed. */
const KEPT_HOURS = 24;

const HOUR_MS = 3_600_000;

/** A request that carries an Idempotency-Key. */
export interface KeyedRequest {
  /** Who calls which route with which key. */
  scope: string;
  /** What is asked for, but for the body. */
  target: string;
  /** Digest of the body; undefined while it is a stream that was not read to its end. */
  digest: () => string | undefined;
  /** Reads the body only to digest it. */
  drain: () => Promise<string>;
}

/** An answer as it is kept and replayed. */
export interface KeptAnswer {
  status: number;
  headers: Record<string, string>;
  value: unknown;
}

/** Runs a request under an Idempotency-Key once, and answers its repetitions with the first answer. */
@Injectable()
export class Idempotency implements OnModuleInit {
  private readonly log = new Logger(Idempotency.name);

  constructor(
    private readonly repository: IdempotencyRepository,
    private readonly vault: Vault,
    private readonly poller: Poller,
  ) {}

  onModuleInit(): void {
    this.poller.every(HOUR_MS, 'idempotency-records', async () => {
      await this.repository.deleteExpired();
    });
  }

  /**
   * @param run carries the request out; its argument is a UUID that stays the same when the request is run again
   *   after a crash or a fault, so that what it creates under that id is created once
   * @returns the answer, and whether it is an earlier one
   * @throws {Problem} 409 `idempotency-in-progress`, 422 `idempotency-key-reused`, or whatever `run` throws
   */
  async once(
    request: KeyedRequest,
    run: (creationId: string) => Promise<KeptAnswer>,
  ): Promise<{ answer: KeptAnswer; replayed: boolean }> {
    const scopeHash = this.vault.fingerprint('idempotency-scope', request.scope);
    const leaseToken = randomUUID();
    const claim = { id: randomUUID(), scopeHash, requestHash: this.requestHash(request, request.digest()), leaseToken };
    const id = await this.repository.claim(claim, LEASE_SECONDS, KEPT_HOURS);
    if (id === undefined) return { answer: await this.replay(request, scopeHash), replayed: true };

    const renewing = setInterval(
      () => void this.repository.renew(id, leaseToken, LEASE_SECONDS).catch(() => undefined),
      (LEASE_SECONDS / 3) * 1000,
    );
    try {
      const answer = await run(id);
      await this.keep(id, leaseToken, request, answer).catch((error: unknown) => this.complain(error));
      return { answer, replayed: false };
    } catch (error) {
      // What is refused had no effect, and the caller may mend it under the same key.
      const refused = (problemOf(error)?.status ?? 500) < 500;
      const leaving = refused ? this.repository.forget(id, leaseToken) : this.repository.release(id, leaseToken);
      await leaving.catch((fault: unknown) => this.complain(fault));
      throw error;
    } finally {
      clearInterval(renewing);
    }
  }

  private async replay(request: KeyedRequest, scopeHash: Buffer): Promise<KeptAnswer> {
    const row = await this.repository.find(scopeHash);
    if (row?.requestHash && request.digest() !== undefined && !this.isSame(request, request.digest(), row))
      throw reused();
    if (!row || row.status === null) throw inProgress();
    if (row.requestHash && request.digest() === undefined && !this.isSame(request, await request.drain(), row)) {
      throw reused();
    }
    const json = row.body && this.vault.open(bodyOf(row.id), row.body);
    return { status: row.status, headers: row.headers ?? {}, value: json ? JSON.parse(json) : undefined };
  }

  private async keep(id: string, leaseToken: string, request: KeyedRequest, answer: KeptAnswer): Promise<void> {
    const json = answer.value === undefined ? undefined : JSON.stringify(answer.value);
    await this.repository.keep(leaseToken, {
      id,
      requestHash: this.requestHash(request, request.digest()),
      status: answer.status,
      headers: answer.headers,
      body: json === undefined ? null : this.vault.seal(bodyOf(id), json),
    });
  }

  private isSame(request: KeyedRequest, digest: string | undefined, row: IdempotencyRow): boolean {
    return this.requestHash(request, digest)?.equals(row.requestHash ?? Buffer.alloc(0)) ?? false;
  }

  private requestHash(request: KeyedRequest, digest: string | undefined): Buffer | null {
    return digest === undefined ? null : this.vault.fingerprint('idempotency-request', `${request.target}\n${digest}`);
  }

  private complain(error: unknown): void {
    this.log.error({ msg: 'an idempotency record could not be written', ...errorTrace(error) });
  }
}

function bodyOf(id: string) {
  return { table: 'idempotency_records', column: 'body', row: id };
}

function reused(): Problem {
  return new Problem(
    422,
    'idempotency-key-reused',
    'This Idempotency-Key was used for another request; take a new key for every new request.',
  );
}

function inProgress(): Problem {
  return new Problem(
    409,
    'idempotency-in-progress',
    'The first request with this Idempotency-Key is still running; ask again later.',
    { retryAfterSeconds: 1 },
  );
}
