import { readFileSync } from 'node:fs';
import { CliFault } from '../src/cli/api/cli-fault.js';
import type { DemoNote } from '../src/cli/api/connection.js';
import { withClient } from '../src/database/connect/session.js';
import { EmbeddedPostgresInUse, startEmbeddedPostgres } from '../src/embedded-postgres/embedded-postgres.js';
import { prepareStores } from '../src/prepare.js';
import { DEMO_DATA, noteFile } from './settings.js';

/**
 * Starts the demo's PostgreSQL and empties its database: the simulated platform loses all users when it stops, so the
 * people synced by an earlier run would be wrong.
 *
 * @returns its URL for a role that owns nothing, and a function that stops it
 * @throws {CliFault} if another demo of this clone runs
 */
export async function freshDatabase(): Promise<{ url: string; stop: () => Promise<void> }> {
  const { url, servingUrl, release } = await startEmbeddedPostgres(DEMO_DATA).catch((error: unknown) => {
    if (!(error instanceof EmbeddedPostgresInUse)) throw error;
    throw new CliFault(
      `A demo of this clone is already running${runningAt()}. Use that one, or stop it with Ctrl-C first.`,
    );
  });
  // The database itself stays, because default privileges belong to it.
  const empty = 'DROP SCHEMA IF EXISTS public, bullmq CASCADE; CREATE SCHEMA public';
  await withClient(url, (client) => client.query(empty));
  await prepareStores({ DATABASE_URL: servingUrl, QUEUE_PREFIX: 'notebridge' }, servingUrl, url);
  return { url: servingUrl, stop: release };
}

function runningAt(): string {
  try {
    return ` at ${(JSON.parse(readFileSync(noteFile(), 'utf8')) as DemoNote).url}`;
  } catch {
    return '';
  }
}
