import { existsSync } from 'node:fs';
import path from 'node:path';
import type { Env } from '../../config/env.js';
import { withConnectHint } from '../../database/connect/connect-fault.js';
import { joinEmbeddedPostgres } from '../../embedded-postgres/embedded-postgres.js';
import { codeOf } from '../../http/problem/fault.js';

/** SQLSTATE 42P01, undefined_table. */
const UNDEFINED_TABLE = '42P01';

type DatabaseSettings = Pick<Env, 'DATABASE_URL' | 'DATABASE_OWNER_URL' | 'DATA_DIR'>;

/**
 * Runs the work of a command that connects to the database itself: that of DATABASE_URL, otherwise the embedded one,
 * whether the service runs or not.
 *
 * @param work gets a connection string of the role; without DATABASE_OWNER_URL, the role of DATABASE_URL owns the tables
 * @throws {Error} one sentence, if the database does not exist yet or cannot be reached
 */
export async function withServiceDatabase<T>(
  { DATABASE_URL: url, DATABASE_OWNER_URL: ownerUrl, DATA_DIR: folder }: DatabaseSettings,
  role: 'service' | 'owner',
  work: (url: string) => Promise<T>,
): Promise<T> {
  if (role === 'owner' && ownerUrl !== undefined) return withConnectHint('DATABASE_OWNER_URL', () => work(ownerUrl));
  if (url !== undefined) return withConnectHint('DATABASE_URL', () => work(url));
  const dataRoot = path.resolve(folder);
  const none = `There is no database of this version under ${dataRoot} yet. Start the service once, or correct DATA_DIR.`;
  if (!existsSync(path.join(dataRoot, 'postgres'))) throw new Error(none);
  const embedded = await joinEmbeddedPostgres(dataRoot);
  try {
    return await withConnectHint('DATA_DIR', () =>
      work(role === 'owner' ? embedded.url : embedded.servingUrl).catch((error: unknown) => {
        // The first start was interrupted before its migrations.
        throw codeOf(error) === UNDEFINED_TABLE ? new Error(none, { cause: error }) : error;
      }),
    );
  } finally {
    await embedded.release();
  }
}
