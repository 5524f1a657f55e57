import { randomBytes } from 'node:crypto';
import pg from 'pg';

export interface TestDatabase {
  readonly url: string;
  drop(): Promise<void>;
}

/** A database of its own, with every migration applied and nothing in it. */
export async function freshDatabase(): Promise<TestDatabase> {
  const name = `test_${randomBytes(6).toString('hex')}`;
  await admin(`CREATE DATABASE ${name} TEMPLATE ${setting('TEST_PG_TEMPLATE')}`);
  const url = new URL(setting('TEST_PG_URL'));
  url.pathname = `/${name}`;
  return { url: url.toString(), drop: () => admin(`DROP DATABASE IF EXISTS ${name} WITH (FORCE)`) };
}

async function admin(sql: string): Promise<void> {
  const client = new pg.Client({ connectionString: setting('TEST_PG_URL') });
  await client.connect();
  await client.query(sql).finally(() => client.end());
}

function setting(name: 'TEST_PG_URL' | 'TEST_PG_TEMPLATE'): string {
  const value = process.env[name];
  if (!value) throw new Error(`${name} is not set: this suite runs under the e2e project, which starts PostgreSQL.`);
  return value;
}
