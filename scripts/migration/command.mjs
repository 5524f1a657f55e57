// npm run migration -- new NAME: writes what schema.prisma asks for beyond the migrations as a new migration.
// npm run migration -- drift: says whether there is any such difference.
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import os from 'node:os';
import path from 'node:path';
import { root } from '../processes.mjs';
import { Fault } from '../setup.mjs';
import { noFilters, readMigrations, readSchema, withSchemaEngine } from './schema-engine.mjs';

const folder = path.join(root, 'prisma', 'migrations');

/** Runs the command with its arguments. Resolves to the exit code. */
export async function migration([verb, name]) {
  if (verb === 'drift') {
    const sql = await missingSql();
    console.log(sql || 'The migrations give exactly prisma/schema.prisma.');
    return sql ? 1 : 0;
  }
  if (verb !== 'new' || !/^[a-z][a-z0-9_]*$/.test(name ?? '')) {
    throw new Fault('Say: npm run migration -- new a_name_in_snake_case, or: npm run migration -- drift');
  }
  const sql = await missingSql();
  if (!sql) {
    console.log('Nothing to write: the migrations give exactly prisma/schema.prisma.');
    return 0;
  }
  const stamp = new Date().toISOString().replace(/\D/g, '').slice(0, 14);
  const file = path.join(folder, `${stamp}_${name}`, 'migration.sql');
  mkdirSync(path.dirname(file), { recursive: true });
  writeFileSync(file, sql);
  writeFileSync(path.join(folder, 'migration_lock.toml'), 'provider = "postgresql"\n');
  console.log(`${path.relative(root, file)}\n\n${sql}`);
  return 0;
}

/** What is wrong, or nothing: for the list of checks. */
export async function checkDrift() {
  const sql = await missingSql();
  return sql && `prisma/schema.prisma asks for more (npm run migration -- new NAME writes it):\n${sql}`;
}

/** The SQL that leads from the migrations to schema.prisma, found on a PostgreSQL that exists only for this. */
async function missingSql() {
  const { startEmbeddedPostgres } = createRequire(import.meta.url)(
    path.join(root, 'dist/src/database/embedded-postgres.js'),
  );
  const dataRoot = mkdtempSync(path.join(os.tmpdir(), 'notebridge-migration-'));
  const server = await startEmbeddedPostgres({ dataRoot, fsync: false });
  try {
    const schema = readSchema(path.join(root, 'prisma', 'schema.prisma'));
    const list = readMigrations(folder);
    const from = list.migrationDirectories.length > 0 ? { tag: 'migrations', ...list } : { tag: 'empty' };
    const { exitCode, stdout } = await withSchemaEngine(server.url, schema, (engine) =>
      engine.diff({
        from,
        to: { tag: 'schemaDatamodel', ...schema },
        script: true,
        exitCode: true,
        filters: noFilters,
      }),
    );
    return exitCode === 0 ? '' : (stdout ?? '');
  } finally {
    await server.release();
    rmSync(server.home, { recursive: true, force: true });
    rmSync(dataRoot, { recursive: true, force: true });
  }
}
