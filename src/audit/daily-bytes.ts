import { Injectable, Logger, type OnModuleDestroy } from '@nestjs/common';
import { Clock } from '../config/clock.js';
import { Env } from '../config/env.js';
import { Database } from '../database/database.js';
import { errorTrace } from '../http/problem/error-trace.js';
import { isDatabaseUnavailable } from '../http/problem/fault.js';
import { Problem } from '../http/problem/problem.js';
import { type Actor, callerOf } from './audit-record.js';

/** How long counted bytes may be unknown to other processes. */
const WRITE_AFTER_MS = 5_000;

const DAY_MS = 86_400_000;

const ADD = `
  WITH outdated AS (DELETE FROM daily_bytes WHERE day < $3::date)
  INSERT INTO daily_bytes AS known (caller, bytes, day)
  SELECT caller, bytes, $3::date FROM unnest($1::text[], $2::bigint[]) AS counted (caller, bytes) ORDER BY caller
  ON CONFLICT (caller, day) DO UPDATE SET bytes = known.bytes + excluded.bytes
  RETURNING caller, bytes::float8 AS bytes`;

/** Counts the bytes that the requests of each caller store in a day (UTC), over all processes. */
@Injectable()
export class DailyBytes implements OnModuleDestroy {
  private readonly log = new Logger(DailyBytes.name);
  private day = '';
  /** As all processes have written, and what this one has not written yet. */
  private readonly written = new Map<string, number>();
  private readonly counted = new Map<string, number>();
  private cancelWrite: (() => void) | undefined;

  constructor(
    private readonly env: Env,
    private readonly clock: Clock,
    private readonly database: Database,
  ) {}

  async onModuleDestroy(): Promise<void> {
    await this.write();
  }

  /** Counts bytes that a request stores. */
  add(by: Actor, bytes: number): void {
    const caller = callerOf(by);
    this.startDay();
    this.counted.set(caller, (this.counted.get(caller) ?? 0) + Math.ceil(bytes));
    this.cancelWrite ??= this.clock.after(WRITE_AFTER_MS, () => void this.write());
  }

  /** Deletions may use as much again. @throws {Problem} 429 `daily-bytes-used` until midnight (UTC) */
  require(by: Actor, method = 'POST'): void {
    const now = this.startDay();
    const caller = callerOf(by);
    const used = (this.written.get(caller) ?? 0) + (this.counted.get(caller) ?? 0);
    if (used < this.env.KEY_DAILY_BYTES * (method === 'DELETE' ? 2 : 1)) return;
    const detail = 'This caller has stored as much as KEY_DAILY_BYTES allows for a day. Continue after midnight (UTC).';
    const retryAfterSeconds = (DAY_MS - (now.getTime() % DAY_MS)) / 1_000;
    throw new Problem('daily-bytes-used', detail, { retryAfterSeconds });
  }

  private startDay(): Date {
    const now = this.clock.now();
    const day = now.toISOString().slice(0, 10);
    if (day === this.day) return now;
    this.day = day;
    this.written.clear();
    this.counted.clear();
    return now;
  }

  /** Adds what was counted to the total of all processes. */
  private async write(): Promise<void> {
    this.cancelWrite?.();
    this.cancelWrite = undefined;
    this.startDay();
    const counted = [...this.counted];
    if (counted.length === 0) return;
    const values = [counted.map(([caller]) => caller), counted.map(([, bytes]) => bytes), this.day];
    try {
      const { rows } = await this.database.pool.query<{ caller: string; bytes: number }>({ text: ADD, values });
      for (const { caller, bytes } of rows) this.written.set(caller, bytes);
      for (const [caller, bytes] of counted) this.counted.set(caller, (this.counted.get(caller) ?? bytes) - bytes);
    } catch (error) {
      if (isDatabaseUnavailable(error)) return;
      this.log.warn({ msg: 'the stored bytes of callers could not be written yet', ...errorTrace(error) });
    }
  }
}
