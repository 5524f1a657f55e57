import { Injectable } from '@nestjs/common';
import type { Pool, PoolClient } from 'pg';
import { Env } from '../../config/env.js';
import { Random } from '../../config/random.js';
import { Database } from '../../database/database.js';
import { operationUrl, urlDigest } from '../../platform/contract/addresses.js';
import { Contract } from '../../platform/contract/contract.js';
import {
  afterCall,
  afterProbe,
  type Breaker,
  type Breakers,
  breakerOf,
  type Signal,
} from '../model/circuit-breaker.js';
import { OPERATIONS, type Operation } from '../model/person.js';

/** A call whose outcome changes breakers. */
interface EndedCall {
  id: string;
  person: string;
  operation: Operation;
  grantedAt: Date;
}

/** SQL of all breakers as one JSON value. */
export const ALL_BREAKERS = `(SELECT coalesce(json_object_agg(operation, state), '{}') FROM circuit_breakers)`;

/** The circuit breakers of all operations, shared by all processes. */
@Injectable()
export class BreakersRepository {
  /** The digest of the base URL. */
  readonly base: string;
  private readonly urls: ReadonlyMap<Operation, string>;

  constructor(
    env: Env,
    contract: Contract,
    private readonly database: Database,
    private readonly random: Random,
  ) {
    const base = env.PLATFORM_BASE_URL;
    this.base = urlDigest(base);
    this.urls = new Map(OPERATIONS.map((operation) => [operation, operationUrl(contract, base, operation)]));
  }

  /** The digests of the URL of an operation, and of its base URL. */
  addressOf(operation: Operation): { url: string; base: string } {
    return { url: this.urls.get(operation) ?? '', base: this.base };
  }

  async read(sql: Pick<Pool, 'query'> = this.database.pool): Promise<Breakers> {
    const { rows } = await sql.query<{ breakers: Breakers }>(`SELECT ${ALL_BREAKERS} AS breakers`);
    return rows[0]?.breakers ?? {};
  }

  /** Marks a call as the probe of an operation, so that no other one starts before it is answered. */
  async markProbe(
    tx: PoolClient,
    operation: Operation,
    call: { id: string; person: string },
    now: Date,
    answerMs: number,
  ): Promise<void> {
    await this.change(tx, operation, (breaker) => afterProbe(breaker, call, now.getTime(), answerMs));
  }

  /**
   * Records the outcome of a call.
   *
   * @param breakers as read before, in this transaction; their changed state replaces the old one
   * @returns the wait of a 429 that opened the breaker, in milliseconds; null if it named none; undefined otherwise
   */
  async record(
    tx: PoolClient,
    breakers: Breakers,
    call: EndedCall,
    signal: Signal,
    now: Date,
  ): Promise<number | null | undefined> {
    const { id, person, operation, grantedAt } = call;
    const ended = { id, person, grantedAt: grantedAt.getTime(), ...this.addressOf(operation) };
    const fraction = this.random.fraction();
    let openedMs: number | null | undefined;
    for (const of of OPERATIONS) {
      const isOther = of !== operation;
      if (isOther && breakerOf(breakers, of).block?.probe !== id) continue;
      // A check went in place of another operation's probe, to learn whether the platform answers. Now the probe may follow.
      const heard: Signal = isOther && signal.kind === 'success' ? { kind: 'not-sent' } : signal;
      await this.changeIfNeeded(tx, breakers, of, (breaker) => {
        const after = afterCall(breaker, of, ended, heard, now.getTime(), fraction);
        if (!isOther) openedMs = after.retryAfterMs;
        return after.breaker;
      });
    }
    return openedMs;
  }

  /** Most calls change nothing, so the row is locked only if one does. */
  private async changeIfNeeded(
    tx: PoolClient,
    breakers: Breakers,
    operation: Operation,
    change: (breaker: Breaker) => Breaker,
  ): Promise<void> {
    const before = breakerOf(breakers, operation);
    if (change(before) === before) return;
    const after = await this.change(tx, operation, change);
    breakers[operation] = after;
    if (before.block && !after.block) await this.retryRejected(tx, operation);
  }

  /** Retries the people that were rejected while the operation was stopped for everyone. They are few, one per probe. */
  private async retryRejected(tx: PoolClient, operation: Operation): Promise<void> {
    await tx.query(
      `UPDATE people SET due_at = clock_timestamp(), retry_at = NULL WHERE id = ANY (ARRAY(
         SELECT id FROM people WHERE refused_at IS NOT NULL AND refused_operation = $1 AND refusal_kind = 'rejected'
         FOR NO KEY UPDATE SKIP LOCKED))`,
      [operation],
    );
  }

  private async change(tx: PoolClient, operation: Operation, change: (breaker: Breaker) => Breaker): Promise<Breaker> {
    const insert = `INSERT INTO circuit_breakers (operation, state) VALUES ($1, $2) ON CONFLICT (operation) DO NOTHING`;
    await tx.query(insert, [operation, breakerOf({}, operation)]);
    const { rows } = await tx.query<{ state: Breaker }>(
      'SELECT state FROM circuit_breakers WHERE operation = $1 FOR UPDATE',
      [operation],
    );
    const before = rows[0]?.state ?? breakerOf({}, operation);
    const after = change(before);
    if (after !== before)
      await tx.query('UPDATE circuit_breakers SET state = $2 WHERE operation = $1', [operation, after]);
    return after;
  }
}
