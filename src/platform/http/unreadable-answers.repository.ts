import { Injectable } from '@nestjs/common';
import { Clock } from '../../config/clock.js';
import { Database, prepared } from '../../database/database.js';
import type { OperationName } from '../contract/operations.js';

/** How often one process stores the same cause, or removes what others have stored. */
const REPEAT_MS = 60_000;

/** The newest unreadable answer to each operation, until one is readable. Shared by all processes. */
@Injectable()
export class UnreadableAnswers {
  /** What this process stored last about an operation; null: nothing is unreadable. */
  private readonly stored = new Map<OperationName, { reason: string | null; atMs: number }>();

  constructor(
    private readonly database: Database,
    private readonly clock: Clock,
  ) {}

  /** Stores why an answer is unreadable. @returns false if this process did so within the last minute */
  async note(operation: OperationName, reason: string): Promise<boolean> {
    if (this.isStored(operation, reason)) return false;
    const upsert = `INSERT INTO unreadable_answers VALUES ($1, $2)
      ON CONFLICT (operation) DO UPDATE SET reason = excluded.reason, at = excluded.at`;
    await this.database.pool.query(prepared(upsert, [operation, reason]));
    return true;
  }

  /** Removes what any process has stored about an operation, once it is answered; at most once a minute. */
  async answered(operation: OperationName): Promise<void> {
    if (this.isStored(operation, null)) return;
    await this.database.pool.query(prepared('DELETE FROM unreadable_answers WHERE operation = $1', [operation]));
  }

  /** Those of the last day, newest first. */
  async list(): Promise<{ operation: OperationName; reason: string }[]> {
    const text = `SELECT operation, reason FROM unreadable_answers WHERE at > now() - interval '1 day' ORDER BY at DESC`;
    return (await this.database.pool.query<{ operation: OperationName; reason: string }>(text)).rows;
  }

  private isStored(operation: OperationName, reason: string | null): boolean {
    const atMs = this.clock.monotonicMs();
    const last = this.stored.get(operation);
    if (last?.reason === reason && atMs - last.atMs < REPEAT_MS) return true;
    this.stored.set(operation, { reason, atMs });
    return false;
  }
}
