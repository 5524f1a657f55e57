// The WebAssembly build of Prisma's schema engine: it compares schemas with no engine binary to download.
import { readdirSync, readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import path from 'node:path';
import { bindMigrationAwareSqlAdapterFactory } from '@prisma/driver-adapter-utils';
import * as glue from '@prisma/schema-engine-wasm/schema_engine_bg';
import { MigrationAdapterFactory } from './migration-adapter.mjs';

// Where the engine says why it panics: the trap itself is an uncaught "RuntimeError: unreachable" in its glue.
globalThis.PRISMA_WASM_PANIC_REGISTRY = {
  set_message: (message) => process.stderr.write(`schema engine panic: ${message}\n`),
};

export const noFilters = { externalTables: [], externalEnums: [] };

/** A schema file as the engine wants it. */
export function readSchema(file) {
  return { files: [{ path: path.basename(file), content: readFileSync(file, 'utf8') }] };
}

/** The migrations in a folder, in the order of their names. */
export function readMigrations(folder) {
  const names = readdirSync(folder, { withFileTypes: true })
    .filter((entry) => entry.isDirectory())
    .map((entry) => entry.name)
    .sort();
  return {
    baseDir: folder,
    lockfile: { path: 'migration_lock.toml', content: 'provider = "postgresql"\n' },
    shadowDbInitScript: '',
    migrationDirectories: names.map((name) => ({
      path: name,
      migrationFile: {
        path: 'migration.sql',
        content: { tag: 'ok', value: readFileSync(path.join(folder, name, 'migration.sql'), 'utf8') },
      },
    })),
  };
}

/** Hands an engine that is connected to `connectionString` to `use`, and closes its connections afterwards. */
export async function withSchemaEngine(connectionString, schema, use) {
  const SchemaEngine = await loadEngine();
  const factory = new MigrationAdapterFactory(connectionString);
  try {
    const datamodels = schema.files.map((file) => [file.path, file.content]);
    const adapter = bindMigrationAwareSqlAdapterFactory(factory);
    return await use(await SchemaEngine.new({ datamodels }, () => {}, adapter));
  } finally {
    await factory.close();
  }
}

async function loadEngine() {
  const home = path.dirname(createRequire(import.meta.url).resolve('@prisma/schema-engine-wasm'));
  const imports = { ...glue };
  // The engine arms a 10 s lock timeout and never clears it; unreferenced, it no longer holds the process.
  for (const key of Object.keys(imports).filter((name) => name.startsWith('__wbg_setTimeout_'))) {
    imports[key] = (run, ms) => setTimeout(run, ms >>> 0).unref();
  }
  const wasm = readFileSync(path.join(home, 'schema_engine_bg.wasm'));
  const { instance } = await WebAssembly.instantiate(wasm, { './schema_engine_bg.js': imports });
  glue.__wbg_set_wasm(instance.exports);
  instance.exports.__wbindgen_start?.();
  return glue.SchemaEngine;
}
