import { randomBytes } from 'node:crypto';
import pg from 'pg';
import { sessionConfig } from '../../src/database/connect/session.js';
import { liftTimeouts, prepareStatements } from './connections.js';
import { useTime, withOptions } from './time.js';

/** Tables that a reset does not change. */
const KEPT_TABLES = ['_prisma_migrations'];

/** The database of one world. */
export interface WorldDatabase {
  readonly url: string;
  /** For the test's own statements. */
  readonly pool: pg.Pool;
  /** Deletes every row, and the statistics of the planner. */
  empty(): Promise<void>;
  drop(): Promise<void>;
}

/** Statistics of an earlier test's few rows would lead to nested loops over the thousands of the next. */
const FORGET_STATISTICS = `
  PERFORM pg_clear_relation_stats('public', relname) FROM pg_class
  WHERE relnamespace = 'public'::regnamespace AND relkind IN ('r', 'i') AND (reltuples > 0 OR relpages > 0);
  IF EXISTS (SELECT FROM pg_statistic JOIN pg_class c ON c.oid = starelid WHERE relnamespace = 'public'::regnamespace) THEN
    PERFORM pg_clear_attribute_stats('public', tablename, attname, false) FROM pg_stats WHERE schemaname = 'public';
  END IF;`;

/** Copies a template that has the world's time and every migration. */
export async function copyTemplate(server: string, template: string): Promise<WorldDatabase> {
  liftTimeouts();
  prepareStatements();
  const name = `world_${randomBytes(6).toString('hex')}`;
  await asAdmin(server, async (client) => {
    await client.query(`CREATE DATABASE ${name} TEMPLATE ${template}`);
    await useTime(client, name);
  });
  const url = Object.assign(new URL(server), { pathname: `/${name}` }).toString();
  const pool = poolOf(url, 8);
  await pool.query(await emptyingOf(pool));
  // The replica role skips foreign keys and the triggers that protect the audit log. It has a separate connection,
  // because PostgreSQL drops the plans of a connection whose role changes.
  const replica = poolOf(url, 1, '-c session_replication_role=replica');
  return {
    url,
    pool,
    async empty() {
      await replica.query('SELECT vtime.empty()');
    },
    async drop() {
      await Promise.all([pool.end(), replica.end()]);
      await asAdmin(server, (client) => client.query(`DROP DATABASE IF EXISTS ${name} WITH (FORCE)`));
    },
  };
}

/**
 * Connections with the settings of the service's. They outlive the test that opens them, so they must not keep the defaults
 * that it gives the database: node-postgres reads any time as null if the style of dates is not ISO.
 */
function poolOf(url: string, max: number, options = ''): pg.Pool {
  const session = sessionConfig(withOptions(url, `-c search_path=public ${options}`.trim()));
  return new pg.Pool({ ...session, max, allowExitOnIdle: true }).on('error', () => undefined);
}

/** SQL of a function that deletes every row: it keeps its plans, whereas TRUNCATE of the 41 tables takes 190 ms. */
async function emptyingOf(pool: pg.Pool): Promise<string> {
  const { rows } = await pool.query<{ name: string }>(
    `SELECT c.oid::regclass::text AS name FROM pg_class c
     WHERE c.relnamespace = 'public'::regnamespace AND c.relkind = 'r' AND c.relname <> ALL ($1)`,
    [KEPT_TABLES],
  );
  const deletions = rows.map(({ name }) => `IF EXISTS (SELECT FROM ${name}) THEN DELETE FROM ${name}; END IF;`);
  return `CREATE FUNCTION vtime.empty() RETURNS void LANGUAGE plpgsql AS $$ BEGIN
    ${deletions.join('\n')} ${FORGET_STATISTICS} END $$`;
}

async function asAdmin(server: string, work: (client: pg.Client) => Promise<unknown>): Promise<void> {
  const client = new pg.Client({ connectionString: server });
  await client.connect();
  await work(client).finally(() => client.end());
}
