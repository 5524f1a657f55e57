import { Injectable } from '@nestjs/common';
import { PrismaService, type Tx } from '../../database/prisma.service.js';
import type { SubscriptionAttempt } from '../../generated/prisma/client.js';
import type { PushAnswer } from './endpoint.js';
import type { SubscriptionRow } from './subscription-row.js';

/** Attempts that are kept of each subscription. `number % KEPT` is the slot of an attempt. */
const KEPT = 50;

/** The event of an attempt, its outcome, and how long it took. */
export type Outcome = Pick<SubscriptionAttempt, 'cursor' | 'type' | 'durationMs'> &
  Pick<PushAnswer, 'status' | 'fault'>;

/** A stored attempt, as callers see it. */
export type Attempt = Outcome & Pick<SubscriptionAttempt, 'at'>;

const SHOWN = { at: true, cursor: true, type: true, status: true, fault: true, durationMs: true } as const;

/** SQL that stores an attempt in place of the oldest one. @param count raises `attempts` of the subscription `$1` */
const storeAfter = (count: string): string => `
  WITH counted AS (${count} RETURNING id, attempts)
  INSERT INTO subscription_attempts (subscription_id, slot, number, at, cursor, type, status, fault, duration_ms)
  SELECT id, attempts % ${KEPT}, attempts, clock_timestamp(), $2, $3, $4::int, $5, $6::int FROM counted
  ON CONFLICT (subscription_id, slot) DO UPDATE SET number = EXCLUDED.number, at = EXCLUDED.at, cursor = EXCLUDED.cursor,
    type = EXCLUDED.type, status = EXCLUDED.status, fault = EXCLUDED.fault, duration_ms = EXCLUDED.duration_ms`;

const valuesOf = (id: string, { cursor, type, status, fault, durationMs }: Outcome) =>
  [id, cursor, type, status, fault, Math.round(durationMs)] as const;

/** The last attempts of subscriptions. */
@Injectable()
export class Attempts {
  constructor(private readonly prisma: PrismaService) {}

  /** Stores an attempt, unless its subscription was deleted. */
  async record(tx: Tx, id: string, attempt: Outcome): Promise<void> {
    const count = 'UPDATE subscriptions SET attempts = attempts + 1 WHERE id = $1::uuid';
    await tx.$executeRawUnsafe(storeAfter(count), ...valuesOf(id, attempt));
  }

  /**
   * Stores a successful attempt, its place, and when the next one is due, in one prepared statement, because it runs for each
   * event.
   *
   * @param name of the statement, one for each `due`
   * @param due SQL of the time
   * @param held SQL condition: nothing is stored
   * @returns false if nothing was stored, because the row has changed or sending is held
   */
  async recordDelivered(
    { id, version, epoch, position }: Pick<SubscriptionRow, 'id' | 'version' | 'epoch' | 'position'>,
    attempt: Outcome,
    { name, due, held }: { name: string; due: string; held: string },
  ): Promise<boolean> {
    const count = `
      UPDATE subscriptions SET attempts = attempts + 1, version = version + 1, failures = 0, failing_since = NULL,
        epoch = $7, position = $8, delivered_at = now(), due_at = ${due}
      WHERE id = $1::uuid AND version = $9 AND NOT ${held}`;
    const values = [...valuesOf(id, attempt), epoch, position, version];
    const { rowCount } = await this.prisma.pool.query({ name, text: storeAfter(count), values });
    return rowCount === 1;
  }

  /** The last attempts of a subscription, newest first. */
  async of(subscriptionId: string): Promise<Attempt[]> {
    const newestFirst = { orderBy: { number: 'desc' }, select: SHOWN } as const;
    return (await this.prisma.subscriptionAttempt.findMany({ where: { subscriptionId }, ...newestFirst })) as Attempt[];
  }

  /** The newest attempt. Prisma reads those of a list in one statement. */
  async newestOf({ id, attempts }: Pick<SubscriptionRow, 'id' | 'attempts'>): Promise<Attempt | null> {
    const where = { subscriptionId_slot: { subscriptionId: id, slot: Number(attempts % BigInt(KEPT)) } };
    return (await this.prisma.subscriptionAttempt.findUnique({ where, select: SHOWN })) as Attempt | null;
  }
}
