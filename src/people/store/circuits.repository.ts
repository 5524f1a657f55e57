import { Injectable } from '@nestjs/common';
import type { PoolClient } from 'pg';
import { Env } from '../../config/env.js';
import { Random } from '../../config/random.js';
import { Database } from '../../database/database.js';
import { PrismaService } from '../../database/prisma.service.js';
import { operationAddress } from '../../platform/contract/addresses.js';
import { Contract } from '../../platform/contract/contract.js';
import type { CallGrant } from '../../platform/rate-limit/rate-limiter.repository.js';
import { backoffMs } from '../../queue/backend/backoff.js';
import type { Operation, Refusal } from '../model/person.js';
import type { StopCode } from '../model/person-codes.js';

/** Limits of the backoff before a refused operation is probed. */
const PROBE_BACKOFF = { baseMs: 5_000, maxMs: 300_000 };

/** How long a probe may stay unanswered before the next one. */
const PROBE_ANSWER_MS = 30_000;

/**
 * The circuits: a refusal stops its operation for all people until a probe succeeds. Also stores the addresses where
 * user management has worked, because only there does a 404 mean a missing user.
 */
@Injectable()
export class CircuitsRepository {
  constructor(
    private readonly env: Env,
    private readonly contract: Contract,
    private readonly database: Database,
    private readonly prisma: PrismaService,
    private readonly random: Random,
  ) {}

  /**
   * The operations that must not be called now, with the times of their next probes, and those due for a probe. A claim
   * holds the budget's lock, so that only one probe is sent.
   */
  async open(now: Date, tx?: PoolClient) {
    const open = await this.stopped(tx);
    const blocked = open.filter(({ probeAt }) => probeAt > now);
    const probing = open.filter(({ probeAt }) => probeAt <= now);
    return {
      blocked: blocked.map(({ operation }) => operation),
      probing: probing.map(({ operation }) => operation),
      probesAt: blocked.map(({ probeAt }) => probeAt.getTime()),
    };
  }

  /** The stopped operations: refused ones first, then those without readable answers. */
  async stopped(tx?: PoolClient): Promise<{ operation: string; code: StopCode; probeAt: Date }[]> {
    const { rows } = await (tx ?? this.database.pool).query<{ operation: string; code: StopCode; probeAt: Date }>(
      `SELECT operation, code, probe_at AS "probeAt" FROM circuits WHERE opened_at IS NOT NULL
       ORDER BY code = 'platform-fault', operation`,
    );
    return rows;
  }

  /** The reason why an operation is stopped; null if it is not. */
  async stopCode(tx: PoolClient, operation: Operation): Promise<string | null> {
    return (await this.stopped(tx)).find((stopped) => stopped.operation === operation)?.code ?? null;
  }

  /** Marks a probe as sent, so that no other call of the operation starts until it is answered or the next one is due. */
  async probe(tx: PoolClient, operation: string): Promise<void> {
    await tx.query(
      `UPDATE circuits SET probe_at = clock_timestamp() + $2 * interval '1 millisecond' WHERE operation = $1`,
      [operation, PROBE_ANSWER_MS],
    );
  }

  /**
   * Records a refusal. It affects only this person if the operation succeeded for another one since this person's last
   * refusal; otherwise it stops the operation.
   *
   * @param before the person's last refusal; null if this refusal must stop the operation
   * @returns the people affected by the refusal
   */
  async refused(
    tx: PoolClient,
    operation: Operation,
    grant: CallGrant,
    code: StopCode,
    before: Refusal | null = null,
  ): Promise<'own' | 'everyone'> {
    const { rows } = await tx.query<{ failures: number; closed_at: Date | null; opened_at: Date | null }>(
      'SELECT failures, closed_at, opened_at FROM circuits WHERE operation = $1 FOR UPDATE',
      [operation],
    );
    const circuit = rows[0];
    if (circuit?.closed_at && before?.operation === operation && circuit.closed_at > before.at) return 'own';
    // Calls that were in flight when the circuit opened do not count again.
    if (circuit?.opened_at && grant.grantedAt < circuit.opened_at) return 'everyone';
    const failures = (circuit?.opened_at ? circuit.failures : 0) + 1;
    await tx.query(
      `INSERT INTO circuits (operation, opened_at, probe_at, failures, code)
       VALUES ($1, clock_timestamp(), clock_timestamp() + $2 * interval '1 millisecond', $3, $4)
       ON CONFLICT (operation) DO UPDATE SET opened_at = coalesce(circuits.opened_at, excluded.opened_at),
         probe_at = excluded.probe_at, failures = excluded.failures, code = excluded.code`,
      [operation, backoffMs(failures, this.random.fraction(), PROBE_BACKOFF), failures, code],
    );
    return 'everyone';
  }

  /**
   * Closes the circuit of an operation after an answer other than a refusal.
   *
   * @param isDone whether the operation succeeded, which proves its address valid
   */
  async answered(tx: PoolClient, operation: Operation, isDone: boolean): Promise<void> {
    await tx.query(
      `WITH good AS (INSERT INTO platform_addresses (address) SELECT $2 WHERE $3 ON CONFLICT DO NOTHING)
       UPDATE circuits SET opened_at = NULL, failures = 0, closed_at = clock_timestamp()
       WHERE operation = $1 AND opened_at IS NOT NULL`,
      [operation, this.addressOf(operation), isDone],
    );
  }

  /** Whether user management has ever worked at the address of an operation. */
  async isAddressGood(tx: PoolClient, operation: Operation): Promise<boolean> {
    const { platformAddress } = await this.prisma.in(tx);
    return (await platformAddress.findUnique({ where: { address: this.addressOf(operation) } })) !== null;
  }

  private addressOf(operation: Operation): string {
    return operationAddress(this.contract, this.env.PLATFORM_BASE_URL, operation);
  }
}
