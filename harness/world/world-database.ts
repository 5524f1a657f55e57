import { randomBytes } from 'node:crypto';
import pg from 'pg';
import { useTime } from './time.js';

/** What stays when all else is forgotten. */
const KEPT = ['_prisma_migrations', 'vault_keys'];

/** A database of a world. */
export interface WorldDatabase {
  readonly url: string;
  /** For statements of the test itself. */
  readonly pool: pg.Pool;
  /** Deletes every row. */
  forget(): Promise<void>;
  drop(): Promise<void>;
}

/** Copies a database that has a world's time and every migration. */
export async function copyOf(server: string, template: string): Promise<WorldDatabase> {
  const name = `world_${randomBytes(6).toString('hex')}`;
  await asAdmin(server, async (client) => {
    await client.query(`CREATE DATABASE ${name} TEMPLATE ${template}`);
    await useTime(client, name);
  });
  const url = Object.assign(new URL(server), { pathname: `/${name}` }).toString();
  const pool = new pg.Pool({ connectionString: url, max: 8, allowExitOnIdle: true });
  pool.on('error', () => undefined);
  const forget = await forgetting(pool);
  return {
    url,
    pool,
    async forget() {
      await pool.query(forget);
    },
    async drop() {
      await pool.end();
      await asAdmin(server, (client) => client.query(`DROP DATABASE IF EXISTS ${name} WITH (FORCE)`));
    },
  };
}

/**
 * SQL that deletes every row, unseen by the triggers that keep the audit trail and by those of foreign keys. It takes 4
 * milliseconds, where TRUNCATE of as many tables takes 200.
 */
async function forgetting(pool: pg.Pool): Promise<string> {
  const { rows } = await pool.query<{ name: string }>(
    `SELECT c.oid::regclass::text AS name FROM pg_class c
     WHERE c.relnamespace = 'public'::regnamespace AND c.relkind = 'r' AND c.relname <> ALL ($1)`,
    [KEPT],
  );
  const deletions = rows.map(({ name }) => `DELETE FROM ${name}`).join('; ');
  return `BEGIN; SET LOCAL session_replication_role = replica; ${deletions}; COMMIT`;
}

async function asAdmin(server: string, work: (client: pg.Client) => Promise<unknown>): Promise<void> {
  const client = new pg.Client({ connectionString: server });
  await client.connect();
  await work(client).finally(() => client.end());
}
