import path from 'node:path';
import { CliFault } from '../src/cli/api/cli-fault.js';
import { withClient } from '../src/database/connect/session.js';
import { prepareStores } from '../src/prepare.js';
import { EmbeddedPostgresInUse, startEmbeddedPostgres } from './embedded-postgres/embedded-postgres.js';

interface FreshDatabase {
  /** For a role that owns nothing. */
  url: string;
  ownerUrl: string;
  stop(): Promise<void>;
}

/**
 * Starts a PostgreSQL and empties its database: the simulated platform loses all users when it stops, so the people synced
 * by an earlier run would be wrong.
 *
 * @param folder of `dataOf`
 * @throws {CliFault} if the same command of this clone runs
 */
export async function freshDatabase(folder: string): Promise<FreshDatabase> {
  const { url, servingUrl, release } = await startEmbeddedPostgres(folder).catch((error: unknown) => {
    if (!(error instanceof EmbeddedPostgresInUse)) throw error;
    throw new CliFault(
      `npm run ${path.basename(folder)} of this clone is already running. Use that one, or stop it with Ctrl-C first.`,
    );
  });
  // The database itself stays, because default privileges belong to it.
  const empty = 'DROP SCHEMA IF EXISTS public, bullmq CASCADE; CREATE SCHEMA public';
  await withClient(url, (client) => client.query(empty));
  await prepareStores({ DATABASE_URL: servingUrl, QUEUE_PREFIX: 'notebridge' }, servingUrl, url);
  return { url: servingUrl, ownerUrl: url, stop: release };
}
