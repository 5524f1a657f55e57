import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { startEmbeddedPostgres } from '../demo/embedded-postgres/embedded-postgres.js';

/** A durable PostgreSQL (fsync on) for one benchmark, deleted afterwards. */
export async function withScratchPostgres<T>(work: (url: string, home: string) => Promise<T>): Promise<T> {
  const folder = await mkdtemp(path.join(tmpdir(), 'notebridge-bench-'));
  const postgres = await startEmbeddedPostgres(folder);
  try {
    return await work(postgres.url, postgres.home);
  } finally {
    await postgres.release();
    await rm(folder, { recursive: true, force: true });
  }
}
