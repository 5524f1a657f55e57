import path from 'node:path';
import type { Env } from '../config/env.js';
import { EmbeddedPostgresInUse, runningEmbeddedPostgres, startEmbeddedPostgres } from './embedded-postgres.js';

/**
 * Runs the work of a command that speaks to the database itself: that of DATABASE_URL, else the embedded one, whether
 * the service runs or not.
 *
 * @param work gets a connection string of the role that serves
 */
export async function withServiceDatabase<T>(
  { DATABASE_URL: url, DATA_DIR: folder }: Pick<Env, 'DATABASE_URL' | 'DATA_DIR'>,
  work: (url: string) => Promise<T>,
): Promise<T> {
  if (url !== undefined) return work(url);
  const dataRoot = path.resolve(folder);
  const embedded = await startEmbeddedPostgres({ dataRoot }).catch((error: unknown) => {
    if (error instanceof EmbeddedPostgresInUse) return undefined;
    throw error;
  });
  try {
    return await work(embedded?.servingUrl ?? runningEmbeddedPostgres(dataRoot));
  } finally {
    await embedded?.release();
  }
}
