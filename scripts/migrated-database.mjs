// A database with every migration, for the checks that ask one.
import { mkdtempSync, rmSync } from 'node:fs';
import { createRequire } from 'node:module';
import os from 'node:os';
import path from 'node:path';

const require = createRequire(import.meta.url);

/** Resolves to its URL, and to what removes it. */
export async function migratedDatabase() {
  const { startEmbeddedPostgres } = require('../dist/demo/embedded-postgres/embedded-postgres.js');
  const { applyMigrations } = require('../dist/src/database/migrations.js');
  const dataRoot = mkdtempSync(path.join(os.tmpdir(), 'notebridge-schema-'));
  const { url, home, release } = await startEmbeddedPostgres(dataRoot, ['fsync=off']);
  await applyMigrations(url);
  const remove = async () => {
    await release();
    for (const folder of [home, dataRoot]) rmSync(folder, { recursive: true, force: true });
  };
  return { url, remove };
}
