import { statfs } from 'node:fs/promises';
import { Injectable, type OnModuleDestroy, type OnModuleInit } from '@nestjs/common';
import { Clock } from '../../config/clock.js';
import { Env } from '../../config/env.js';
import { isLoopbackHost } from '../../config/setting-rules.js';
import { Database } from '../../database/database.js';
import { Problem } from '../../http/problem/problem.js';
import { type Health, HealthIndicator, healthOf } from '../../http/server/health-indicator.js';

/** How long a measurement is valid. A disk that fills at 100 MB/s fills the default reserve in that time. */
const MEASURE_MS = 10_000;

const RETRY_SECONDS = 60;

/**
 * Keeps the last of the database's disk for the inbox. PostgreSQL cannot tell how much is free: a database on this machine
 * is measured by the disk of DATA_DIR, and any other by DATABASE_SIZE_LIMIT.
 */
@Injectable()
export class DiskReserve implements OnModuleInit, OnModuleDestroy {
  private free = Number.POSITIVE_INFINITY;
  private cancel: () => void = () => undefined;

  constructor(
    private readonly env: Env,
    private readonly database: Database,
    private readonly clock: Clock,
  ) {}

  async onModuleInit(): Promise<void> {
    await this.measure().catch(() => undefined); // the last measurement stands
    this.cancel = this.clock.after(MEASURE_MS, () => void this.onModuleInit());
  }

  onModuleDestroy(): void {
    this.cancel();
  }

  /**
   * Lets requests pass while the reserve is unused. Reads, which only store their audit entries, may use half of it.
   * Deletions always pass.
   *
   * @throws {Problem} 507 `disk-full`
   */
  require(method: string): void {
    const { DISK_RESERVE: reserve } = this.env;
    const needed = method === 'DELETE' ? Number.NEGATIVE_INFINITY : method === 'GET' ? reserve / 2 : reserve;
    if (this.free >= needed) return;
    const detail =
      'The disk of the database is nearly full. Ask the operator to free space, then send the request again.';
    throw new Problem(507, 'disk-full', detail, { retryAfterSeconds: RETRY_SECONDS });
  }

  @HealthIndicator({ name: 'disk', needs: ['database'] })
  health(): Health {
    const facts = { freeBytes: Number.isFinite(this.free) ? this.free : null };
    return healthOf([this.free < this.env.DISK_RESERVE && { code: 'disk-nearly-full' }], facts);
  }

  private async measure(): Promise<void> {
    const { DATABASE_SIZE_LIMIT: limit, DATA_DIR: folder } = this.env;
    const free = [Number.POSITIVE_INFINITY];
    if (limit !== undefined) {
      const size = 'SELECT pg_database_size(current_database())::float8 AS bytes';
      const { rows } = await this.database.pool.query<{ bytes: number }>(size);
      free.push(limit - (rows[0]?.bytes ?? 0));
    }
    if (isLoopbackHost(new URL(this.database.url).hostname)) {
      const { bavail, bsize } = await statfs(folder);
      free.push(bavail * bsize);
    }
    this.free = Math.min(...free);
  }
}
