import { Injectable, type OnApplicationShutdown } from '@nestjs/common';
import type pg from 'pg';
import { LOCKS } from '../../database/advisory-locks.js';
import { takeCollected } from '../../database/after-commit.js';
import { ANSWER_TIMEOUT_MS, newPool } from '../../database/connect/pools.js';
import { PrismaService } from '../../database/prisma.service.js';
import { Problem } from '../../http/problem/problem.js';

/** Milliseconds to wait for a new connection before an upload fails instead of hanging. */
const CONNECT_TIMEOUT_MS = 5_000;

/** `Retry-After` of a rejected upload. */
const TRY_AGAIN_SECONDS = 30;

/**
 * Reads uploads, a few at a time, over dedicated connections, so that slow senders do not block other users of the
 * database. An upload is one transaction and is never retried, because its bytes arrive only once.
 */
@Injectable()
export class UploadConnectionPool implements OnApplicationShutdown {
  private readonly pool: pg.Pool;
  /** Uploads that this process reads at the same time. Each holds a connection until its end. */
  private readonly places: number;
  private taken = 0;

  constructor(private readonly prisma: PrismaService) {
    this.places = prisma.shares.uploads;
    this.pool = newPool({
      connectionString: prisma.url,
      max: this.places,
      connectionTimeoutMillis: CONNECT_TIMEOUT_MS,
      // Each statement stores a batch that is there; a connection that fell silent costs its upload, not its place.
      query_timeout: ANSWER_TIMEOUT_MS,
      application_name: 'notebridge-uploads',
    });
  }

  /** Runs an upload in a transaction. @throws {Problem} 503 `too-many-uploads` when all places are taken */
  async transaction(work: (tx: pg.PoolClient) => Promise<void>): Promise<void> {
    if (this.taken === this.places) {
      const detail = `${this.places} imports are being read, which is the maximum. Send this one again later.`;
      throw new Problem('too-many-uploads', detail, { retryAfterSeconds: TRY_AGAIN_SECONDS });
    }
    this.taken += 1;
    let tx: pg.PoolClient | undefined;
    try {
      tx = await this.pool.connect();
      await tx.query('BEGIN');
      await tx.query('SELECT pg_advisory_xact_lock_shared($1)', [LOCKS.openUploads]);
      await work(tx).finally(() => tx && this.prisma.leave(tx));
      await tx.query('COMMIT');
      for (const run of takeCollected(tx)) run();
      tx.release();
    } catch (error) {
      tx?.release(true); // the connection may be in any state, so it is not reused
      throw error;
    } finally {
      this.taken -= 1;
    }
  }

  async onApplicationShutdown(): Promise<void> {
    await this.pool.end();
  }
}
