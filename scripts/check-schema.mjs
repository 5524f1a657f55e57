// Compares the tables that the migration makes with prisma/schema.prisma. `prisma migrate diff` would do this with an
// engine that it downloads. The WebAssembly build of that engine is a package, so it works without a network.
import { readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import path from 'node:path';
import { PrismaPg } from '@prisma/adapter-pg';
import { bindMigrationAwareSqlAdapterFactory, ColumnTypeEnum } from '@prisma/driver-adapter-utils';
import * as glue from '@prisma/schema-engine-wasm/schema_engine_bg';
import pg from 'pg';

const require = createRequire(import.meta.url);
const root = path.resolve(import.meta.dirname, '..');

/** The SQL that would lead from a database with every migration to schema.prisma. Empty if they agree. */
export async function findSchemaDrift(url) {
  const pool = new CatalogPool({ connectionString: url, max: 1 });
  return missingSql(pool).finally(() => pool.end());
}

async function missingSql(pool) {
  const file = path.join(root, 'prisma/schema.prisma');
  const content = readFileSync(file, 'utf8');
  const schema = { files: [{ path: file, content }] };
  const factory = { provider: 'postgres', adapterName: '@prisma/adapter-pg', connect: () => connect(pool) };
  const SchemaEngine = await loadEngine();
  const engine = await SchemaEngine.new(
    { datamodels: [[file, content]] },
    () => {},
    bindMigrationAwareSqlAdapterFactory(factory),
  );
  const { exitCode, stdout } = await engine.diff({
    from: { tag: 'schemaDatasource', ...schema, configDir: root },
    to: { tag: 'schemaDatamodel', ...schema },
    script: true,
    exitCode: true,
    filters: { externalTables: [], externalEnums: [] },
  });
  return exitCode === 0 ? '' : stdout;
}

const CHAR_OID = 18;
const TEXT_OID = 25;

/** The one-letter columns of a result, by its rows. */
const letters = new WeakMap();

/** The adapter does not know the type of the one-letter columns in PostgreSQL's catalogues, so they pass it as text. */
class CatalogPool extends pg.Pool {
  async query(...args) {
    const { fields, ...result } = await super.query(...args);
    const isLetter = fields.map(({ dataTypeID }) => dataTypeID === CHAR_OID);
    letters.set(result.rows, isLetter);
    const asText = (field, column) => (isLetter[column] ? { ...field, dataTypeID: TEXT_OID } : field);
    return { ...result, fields: fields.map(asText) };
  }
}

async function connect(pool) {
  const adapter = await new PrismaPg(pool).connect();
  const queryRaw = adapter.queryRaw.bind(adapter);
  return Object.assign(adapter, {
    queryRaw: async (query) => {
      const { rows, columnTypes, ...rest } = await queryRaw(query);
      const isLetter = (column) => letters.get(rows)[column];
      return {
        ...rest,
        rows,
        columnTypes: columnTypes.map((type, column) => (isLetter(column) ? ColumnTypeEnum.Character : type)),
      };
    },
  });
}

async function loadEngine() {
  const imports = { ...glue };
  // The engine sets a timer of 10 s for a lock and never clears it, which would hold the process.
  for (const key of Object.keys(imports).filter((name) => name.startsWith('__wbg_setTimeout_')))
    imports[key] = (run, ms) => setTimeout(run, ms >>> 0).unref();
  const home = path.dirname(require.resolve('@prisma/schema-engine-wasm'));
  const wasm = readFileSync(path.join(home, 'schema_engine_bg.wasm'));
  const { instance } = await WebAssembly.instantiate(wasm, { './schema_engine_bg.js': imports });
  glue.__wbg_set_wasm(instance.exports);
  instance.exports.__wbindgen_start?.();
  return glue.SchemaEngine;
}
