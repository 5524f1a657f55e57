import { existsSync } from 'node:fs';
import { statfs } from 'node:fs/promises';
import path from 'node:path';
import type pg from 'pg';
import type { Env } from '../../config/env.js';
import { Random } from '../../config/random.js';
import { checkDataFolder } from '../../database/data-folder.js';
import { withClient } from '../../database/database.js';
import { EmbeddedPostgresInUse, startEmbeddedPostgres } from '../../database/embedded-postgres.js';
import { migrationNames } from '../../database/migrations.js';
import { commitFault } from '../../database/runtime-role.js';
import { prepareQueueStore } from '../../queue/backend/backend.js';
import { parseDataKeys } from '../../vault/data-keys.js';
import { Vault } from '../../vault/vault.js';
import { FINGERPRINT_PLACE } from '../../vault/vault.module.js';
import { causeOf } from '../api/api.js';
import { byteSize } from '../output/print.js';
import type { Checks, Finding } from './finding.js';

/** Node below this can't load the packages (Nest 12). */
const OLDEST_NODE = [20, 19] as const;

/** Bytes; PostgreSQL stops committing when its disk is full. */
const LEAST_FREE_BYTES = 1024 ** 3;

const NEW_KEY = 'For a new database: echo "k1:$(openssl rand -base64 32)".';

/**
 * The versions and the disk of this machine.
 *
 * @param dataDir where the embedded database keeps its data
 * @param isUsed whether there is one
 */
export function machineChecks(dataDir: string, isUsed: boolean): Checks {
  return {
    Node: () => nodeFinding(process.versions.node),
    Disk: () => diskFinding(path.resolve(dataDir), isUsed),
  };
}

/** The database, its keys, and what the queues run on. Nothing is changed. */
export function storeChecks(env: Env): Checks {
  const { DATABASE_URL: url, DATA_KEYS: keys } = env;
  const queues = { Queues: () => queueFinding(env) };
  // The keys of the embedded database stand beside it.
  if (!url) return { Database: () => embeddedFinding(env), ...queues };
  return { Database: () => databaseFinding(url), Keys: () => keysFinding(url, keys), ...queues };
}

/** Whether a version of Node will do. */
export function nodeFinding(version: string): Finding {
  const [major = 0, minor = 0] = version.split('.').map(Number);
  const isGood = major > OLDEST_NODE[0] || (major === OLDEST_NODE[0] && minor >= OLDEST_NODE[1]);
  if (isGood) return { state: 'ok', what: `${version} on ${process.platform} ${process.arch}` };
  const advice = [`Install Node ${OLDEST_NODE.join('.')} or later.`];
  return { state: 'faulty', what: `${version} is too old`, advice };
}

async function diskFinding(folder: string, isUsed: boolean): Promise<Finding> {
  if (isUsed) checkDataFolder(folder);
  let place = folder;
  while (!existsSync(place)) place = path.dirname(place);
  const { bavail, bsize } = await statfs(place);
  const what = `${byteSize(bavail * bsize)} free at ${place}`;
  if (bavail * bsize >= LEAST_FREE_BYTES) return { state: 'ok', what };
  return { state: 'faulty', what, advice: ['Make room: a database whose disk is full takes no webhooks.'] };
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
  try {
    return await withClient(url, async (client) => {
      const fault = await commitFault(client);
      if (fault) return { state: 'faulty', what: fault };
      const { rows } = await client.query<{ version: string }>(`SELECT current_setting('server_version') AS version`);
      const missing = await missingMigrations(client);
      const what = `PostgreSQL ${rows[0]?.version.split(' ')[0]}, ${missing.length} migrations to apply`;
      return { state: 'ok', what, advice: missing.length > 0 ? ['They are applied when the service starts.'] : [] };
    });
  } catch (error) {
    const advice = ['Check DATABASE_URL, and that the server takes connections from here.'];
    return { state: 'faulty', what: `PostgreSQL can not be used (${causeOf(error)})`, advice };
  }
}

async function hasTable(client: pg.Client, name: string): Promise<boolean> {
  const text = 'SELECT to_regclass($1) IS NOT NULL AS "isThere"';
  return (await client.query<{ isThere: boolean }>(text, [name])).rows[0]?.isThere === true;
}

async function missingMigrations(client: pg.Client): Promise<string[]> {
  const names = await migrationNames();
  if (!(await hasTable(client, '_prisma_migrations'))) return names;
  const text = 'SELECT migration_name AS name FROM _prisma_migrations WHERE finished_at IS NOT NULL';
  const { rows } = await client.query<{ name: string }>(text);
  const applied = new Set(rows.map((row) => row.name));
  return names.filter((name) => !applied.has(name));
}

/**
 * Whether DATA_KEYS opens what no start does without: the key of the fingerprints, sealed at the first start.
 *
 * @throws {Error} the vault's, when it does not open
 */
async function keysFinding(url: string, keys: string[] | undefined): Promise<Finding> {
  if (!keys) return { state: 'faulty', what: 'DATA_KEYS is not set', advice: [NEW_KEY] };
  const sealed = await sealedKey(url).catch(() => 'unread' as const);
  if (sealed === 'unread') return { state: 'unknown', what: 'not judged: the database can not be read' };
  if (!sealed) return { state: 'ok', what: `${keys.length} given; nothing is sealed yet` };
  new Vault(parseDataKeys(keys), Buffer.alloc(0), new Random()).openBytes(FINGERPRINT_PLACE, sealed);
  return { state: 'ok', what: `${keys.length} given; they open what was sealed at the first start` };
}

async function sealedKey(url: string): Promise<Buffer | undefined> {
  return withClient(url, async (client) => {
    if (!(await hasTable(client, 'vault_keys'))) return undefined;
    const text = 'SELECT wrapped FROM vault_keys WHERE purpose = $1';
    return (await client.query<{ wrapped: Buffer }>(text, [FINGERPRINT_PLACE.row])).rows[0]?.wrapped;
  });
}

async function queueFinding(env: Env): Promise<Finding> {
  if (!env.REDIS_URL) return { state: 'ok', what: 'on PostgreSQL, since REDIS_URL is not set' };
  const warning = await prepareQueueStore(env, '');
  if (!warning) return { state: 'ok', what: 'on Redis, which drops nothing (noeviction)' };
  return { state: 'faulty', what: warning, advice: ['Check REDIS_URL.'] };
}
