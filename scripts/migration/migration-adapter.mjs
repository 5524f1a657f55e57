// @prisma/adapter-pg 7.10 as a *migration* adapter has four defects that this file works around:
//  1. executeScript() splits the script on every ';' (breaks DO $$…$$, functions, string literals) and runs the
//     pieces on pool connections outside a transaction -> send the whole script as one simple query (atomic).
//  2. connectToShadowDb() opens {...config, database}: with a connectionString the string's database wins, so the
//     "shadow" would be the real database -> build the shadow URL ourselves.
//  3. it drops the shadow database before closing its pool -> end first, then DROP … WITH (FORCE).
//  4. introspection selects "char" columns (pg oid 18), which it rejects -> read as text, report as Character.
import { randomUUID } from 'node:crypto';
import { PrismaPg } from '@prisma/adapter-pg';
import { ColumnTypeEnum, DriverAdapterError } from '@prisma/driver-adapter-utils';
import pg from 'pg';

const CHAR_OID = 18;
const TEXT_OID = 25;

const charColumns = new WeakMap();

function charAsText(result) {
  result.fields?.forEach((field, column) => {
    if (field.dataTypeID !== CHAR_OID) return;
    field.dataTypeID = TEXT_OID;
    charColumns.set(result.rows, [...(charColumns.get(result.rows) ?? []), column]);
  });
  return result;
}

class Pool extends pg.Pool {
  query(...args) {
    const answer = super.query(...args);
    return typeof answer?.then === 'function' ? answer.then(charAsText) : answer;
  }
}

export class MigrationAdapterFactory {
  provider = 'postgres';
  adapterName = '@prisma/adapter-pg';
  #opened = new Set();
  #connectionString;

  constructor(connectionString) {
    this.#connectionString = connectionString;
  }

  /** The engine never disposes its main adapter: without this an idle pool holds the process for 10 s. */
  async close() {
    await Promise.all([...this.#opened].map((adapter) => adapter.dispose()));
  }

  connect() {
    return this.#open(this.#connectionString);
  }

  async connectToShadowDb() {
    const name = `prisma_shadow_${randomUUID().replaceAll('-', '')}`;
    const url = new URL(this.#connectionString);
    url.pathname = `/${name}`;
    await this.#admin(`CREATE DATABASE "${name}"`);
    return this.#open(url.toString(), () => this.#admin(`DROP DATABASE IF EXISTS "${name}" WITH (FORCE)`));
  }

  async #open(connectionString, afterwards) {
    const pool = new Pool({ connectionString, max: 1, options: '-c TimeZone=UTC' });
    pool.on('error', () => {});
    const adapter = await new PrismaPg(pool).connect();
    adapter.executeScript = async (script) => {
      await pool.query(script).catch(({ code = 'N/A', severity = 'N/A', message, detail, column, hint }) => {
        throw new DriverAdapterError({ kind: 'postgres', code, severity, message, detail, column, hint });
      });
    };
    const queryRaw = adapter.queryRaw.bind(adapter);
    adapter.queryRaw = async (query) => {
      const result = await queryRaw(query);
      for (const column of charColumns.get(result.rows) ?? []) result.columnTypes[column] = ColumnTypeEnum.Character;
      return result;
    };
    const dispose = adapter.dispose.bind(adapter);
    adapter.dispose = async () => {
      if (!this.#opened.delete(adapter)) return;
      await dispose();
      await pool.end();
      await afterwards?.();
    };
    this.#opened.add(adapter);
    return adapter;
  }

  async #admin(sql) {
    const client = new pg.Client({ connectionString: this.#connectionString });
    await client.connect();
    await client.query(sql).finally(() => client.end());
  }
}
