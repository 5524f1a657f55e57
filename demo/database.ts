import { readFileSync } from 'node:fs';
import pg from 'pg';
import { CliFault } from '../src/cli/api/cli-fault.js';
import type { DemoNote } from '../src/cli/api/connection.js';
import { EmbeddedPostgresInUse, startEmbeddedPostgres } from '../src/database/embedded-postgres.js';
import { prepareStores } from '../src/prepare.js';
import { DEMO_DATA, noteFile } from './settings.js';

/**
 * The demo's PostgreSQL with an empty database: the simulated platform forgets everybody when it stops, so whatever an
 * earlier run had mirrored would be wrong.
 *
 * @returns its address for a role that owns nothing, and what stops it
 * @throws {CliFault} when another demo of this clone runs
 */
export async function freshDatabase(): Promise<{ url: string; stop: () => Promise<void> }> {
  const { url, servingUrl, release } = await startEmbeddedPostgres({ dataRoot: DEMO_DATA }).catch((error: unknown) => {
    if (!(error instanceof EmbeddedPostgresInUse)) throw error;
    throw new CliFault(`A demo of this clone runs already${runningAt()}: use that one, or stop it with Ctrl-C first.`);
  });
  const session = new pg.Client({ connectionString: new URL('/postgres', url).toString() });
  const name = pg.escapeIdentifier(new URL(url).pathname.slice(1));
  await session.connect();
  await session.query(`DROP DATABASE IF EXISTS ${name} WITH (FORCE)`);
  await session.query(`CREATE DATABASE ${name}`);
  await session.end();
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
