import { readFileSync } from 'node:fs';
import pg from 'pg';
import { CliFault } from '../src/cli/api/cli-fault.js';
import type { DemoNote } from '../src/cli/api/connection.js';
import { startEmbeddedPostgres } from '../src/database/embedded-postgres.js';
import { DEMO_DATA, noteFile } from './settings.js';

/** Any fixed number: the demo that holds this advisory lock is the only one of its clone. */
const LOCK = 727_003;

/**
 * The demo's PostgreSQL with an empty database: the simulated platform forgets everybody when it stops, so whatever an
 * earlier run had mirrored would be wrong.
 *
 * @returns a function that lets go of it; the service, which holds it too, must have stopped before
 * @throws {CliFault} when another demo of this clone runs
 */
export async function freshDatabase(): Promise<() => Promise<void>> {
  const embedded = await startEmbeddedPostgres({ dataRoot: DEMO_DATA });
  const url = new URL(embedded.url);
  const name = pg.escapeIdentifier(url.pathname.slice(1));
  url.pathname = '/postgres';
  const session = new pg.Client({ connectionString: url.toString() });
  session.on('error', () => {}); // the server is stopped by whoever lets go last
  await session.connect();
  const { rows } = await session.query<{ held: boolean }>('SELECT pg_try_advisory_lock($1) AS held', [LOCK]);
  const release = async () => {
    await session.end();
    await embedded.release();
  };
  if (!rows[0]?.held) {
    await release();
    throw new CliFault(`A demo of this clone runs already${runningAt()}: use that one, or stop it with Ctrl-C first.`);
  }
  await session.query(`DROP DATABASE IF EXISTS ${name} WITH (FORCE)`);
  await session.query(`CREATE DATABASE ${name}`);
  return release;
}

function runningAt(): string {
  try {
    return ` at ${(JSON.parse(readFileSync(noteFile(), 'utf8')) as DemoNote).url}`;
  } catch {
    return '';
  }
}
