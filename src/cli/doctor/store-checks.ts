import { existsSync } from 'node:fs';
import path from 'node:path';
import pg from 'pg';
import type { Env } from '../../config/env.js';
import { Random } from '../../config/random.js';
import { SESSION_OPTIONS } from '../../database/database.js';
import { EmbeddedPostgresInUse, startEmbeddedPostgres } from '../../database/embedded-postgres.js';
import { migrationNames } from '../../database/migrations.js';
import { commitFault } from '../../database/runtime-role.js';
import { prepareQueueStore } from '../../queue/backend/backend.js';
import { parseDataKeys } from '../../vault/data-keys.js';
import { Vault } from '../../vault/vault.js';
import { FINGERPRINT_PLACE } from '../../vault/vault.module.js';
import type { Check, Finding } from './finding.js';

/** Milliseconds that the database has to take a connection: a machine that is busy is not called ill. */
const CONNECT_TIMEOUT_MS = 15_000;

const NEW_KEY = 'For a new database: echo "k1:$(openssl rand -base64 32)".';

/** The database, and what the queues run on. Nothing is changed. */
export function storeChecks(env: Env): Check[] {
  return [
    { name: 'Database', look: () => (env.DATABASE_URL ? databaseFinding(env.DATABASE_URL) : embeddedFinding(env)) },
    ...keyChecks(env),
    { name: 'Queues', look: () => queueFinding(env) },
  ];
}

/** The keys of a database of one's own; those of the embedded one stand beside it. Without a database none is judged. */
function keyChecks({ DATABASE_URL: url, DATA_KEYS: keys }: Env): Check[] {
  if (!url) return [];
  if (!keys)
    return [{ name: 'Keys', look: () => ({ state: 'faulty', what: 'DATA_KEYS is not set', advice: [NEW_KEY] }) }];
  const unjudged: Finding = { state: 'unknown', what: 'not judged: the database can not be read' };
  return [
    {
      name: 'Keys',
      look: () =>
        keysFinding(url, keys).catch((error) => {
          if (error instanceof Error && !('code' in error)) throw error;
          return unjudged;
        }),
    },
  ];
}

async function embeddedFinding(env: Env): Promise<Finding> {
  const dataRoot = path.resolve(env.DATA_DIR);
  if (!existsSync(path.join(dataRoot, 'postgres'))) {
    return { state: 'ok', what: `the embedded PostgreSQL will be made under ${env.DATA_DIR} at the first start` };
  }
  const embedded = await startEmbeddedPostgres({ dataRoot }).catch((error: unknown) => {
    if (error instanceof EmbeddedPostgresInUse) return undefined;
    throw error;
  });
  if (!embedded) return { state: 'unknown', what: 'not judged: the embedded PostgreSQL is in use by the service' };
  try {
    const finding = await databaseFinding(embedded.url);
    return { ...finding, what: `${finding.what}; the embedded one, in ${embedded.home}` };
  } finally {
    await embedded.release();
  }
}

async function databaseFinding(url: string): Promise<Finding> {
  const client = new pg.Client({
    connectionString: url,
    connectionTimeoutMillis: CONNECT_TIMEOUT_MS,
    options: SESSION_OPTIONS,
  });
  try {
    await client.connect();
    const { rows } = await client.query<{ version: string; history: string | null }>(
      `SELECT current_setting('server_version') AS version, to_regclass('_prisma_migrations')::text AS history`,
    );
    const fault = await commitFault(client);
    if (fault) return { state: 'faulty', what: fault };
    const missing = await missingMigrations(client, rows[0]?.history !== null);
    const what = `PostgreSQL ${rows[0]?.version.split(' ')[0]}, ${missing.length} migrations to apply`;
    const advice = missing.length > 0 ? ['They are applied when the service starts.'] : [];
    return { state: 'ok', what, advice };
  } catch (error) {
    const code = error instanceof Error && 'code' in error ? String(error.code) : 'no answer';
    const advice = ['Check DATABASE_URL, and that the server takes connections from here.'];
    return { state: 'faulty', what: `PostgreSQL can not be used (${code})`, advice };
  } finally {
    await client.end();
  }
}

async function missingMigrations(client: pg.Client, hasHistory: boolean): Promise<string[]> {
  const names = await migrationNames();
  if (!hasHistory) return names;
  const { rows } = await client.query<{ name: string }>(
    'SELECT migration_name AS name FROM _prisma_migrations WHERE finished_at IS NOT NULL',
  );
  const applied = new Set(rows.map((row) => row.name));
  return names.filter((name) => !applied.has(name));
}

async function queueFinding(env: Env): Promise<Finding> {
  if (!env.REDIS_URL) return { state: 'ok', what: 'on PostgreSQL, since REDIS_URL is not set' };
  const warning = await prepareQueueStore(env, '');
  if (!warning) return { state: 'ok', what: 'on Redis, which drops nothing (noeviction)' };
  return { state: 'faulty', what: warning, advice: ['Check REDIS_URL.'] };
}

/**
 * Whether DATA_KEYS opens what no start does without: the key of the fingerprints, sealed at the first start.
 *
 * @throws {Error} the vault's, when it does not open; pg's, when the database can't be read
 */
export async function keysFinding(url: string, dataKeys: string[]): Promise<Finding> {
  const wrapped = await readWrapped(url);
  if (!wrapped) return { state: 'ok', what: `${dataKeys.length} given; nothing is sealed yet` };
  new Vault(parseDataKeys(dataKeys), Buffer.alloc(0), new Random()).openBytes(FINGERPRINT_PLACE, wrapped);
  return { state: 'ok', what: `${dataKeys.length} given; they open what was sealed at the first start` };
}

async function readWrapped(url: string): Promise<Buffer | undefined> {
  const client = new pg.Client({ connectionString: url, connectionTimeoutMillis: 5_000, options: SESSION_OPTIONS });
  try {
    await client.connect();
    const { rows: tables } = await client.query<{ name: string | null }>(
      `SELECT to_regclass('vault_keys')::text AS name`,
    );
    if (!tables[0]?.name) return undefined;
    const text = 'SELECT wrapped FROM vault_keys WHERE purpose = $1';
    return (await client.query<{ wrapped: Buffer }>(text, [FINGERPRINT_PLACE.row])).rows[0]?.wrapped;
  } finally {
    await client.end();
  }
}
