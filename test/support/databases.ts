import { randomBytes } from 'node:crypto';
import pg from 'pg';
import { until } from '../../harness/until.js';

/** PostgreSQL's code of a database with open connections. */
const IN_USE = '55006';

export interface TestDatabase {
  readonly url: string;
  /** For the test's own statements. */
  readonly sql: pg.Pool;
  drop(): Promise<void>;
}

/** A new database with every migration and without rows. */
export async function freshDatabase(): Promise<TestDatabase> {
  return createDatabase(setting('TEST_PG_URL'), setting('TEST_PG_TEMPLATE'));
}

/** A new database on another server, with the contents of the template. */
export async function createDatabase(serverUrl: string, template = 'template1'): Promise<TestDatabase> {
  const name = `test_${randomBytes(6).toString('hex')}`;
  await admin(serverUrl, `CREATE DATABASE ${name} TEMPLATE ${template}`);
  const url = Object.assign(new URL(serverUrl), { pathname: `/${name}` }).toString();
  const sql = new pg.Pool({ connectionString: url, idleTimeoutMillis: 500 }).on('error', () => undefined);
  return {
    url,
    sql,
    async drop() {
      if (!sql.ending) await sql.end();
      // The server waits five seconds until backends have ended, which may take longer on a busy machine.
      await until('the database is gone', () =>
        admin(serverUrl, `DROP DATABASE IF EXISTS ${name} WITH (FORCE)`).then(
          () => true,
          (error: { code?: string }) => {
            if (error.code === IN_USE) return false;
            throw error;
          },
        ),
      );
    },
  };
}

/** The rows of one statement. */
export async function query<Row extends pg.QueryResultRow>(
  { sql }: Pick<TestDatabase, 'sql'>,
  text: string,
  values: unknown[] = [],
): Promise<Row[]> {
  return (await sql.query<Row>(text, values)).rows;
}

/**
 * The backends that wait for a lock of this one. Other waits do not count: autovacuum analyses the tables that a test has
 * just filled, and locks them.
 */
export async function pidsBlockedBy(sql: pg.Pool, pid: number): Promise<number[]> {
  const blocked =
    'SELECT pid FROM pg_stat_activity WHERE datname = current_database() AND $1 = ANY (pg_blocking_pids(pid))';
  return (await sql.query<{ pid: number }>(blocked, [pid])).rows.map((row) => row.pid);
}

/** The process id of the backend that serves a connection. */
export async function backendPid(client: pg.ClientBase): Promise<number> {
  return (await client.query<{ pid: number }>('SELECT pg_backend_pid() AS pid')).rows[0]?.pid ?? 0;
}

async function admin(serverUrl: string, sql: string): Promise<void> {
  const client = new pg.Client({ connectionString: serverUrl });
  await client.connect();
  await client.query(sql).finally(() => client.end());
}

function setting(name: 'TEST_PG_URL' | 'TEST_PG_TEMPLATE'): string {
  const value = process.env[name];
  if (!value) throw new Error(`${name} is not set: run this suite with npm test, which starts PostgreSQL.`);
  return value;
}
