import type { Env } from './config/env.js';
import { withConnectHint } from './database/connect/connect-fault.js';
import { inSchema, withClient } from './database/connect/session.js';
import { applyMigrations, missingMigrations } from './database/migrations.js';
import { checkRuntimeRights, mayChangeAuditLog, UNPROTECTED_AUDIT_LOG } from './database/runtime-role.js';
import {
  creationFault,
  type DatabaseFacts,
  databaseFault,
  readDatabaseFacts,
} from './operations/start/database-faults.js';
import { weakSecretWarnings } from './operations/start/weak-secrets.js';
import { prepareQueueStore } from './queue/backend/prepare-queue-store.js';

/** What a start has done, in sentences. */
interface Prepared {
  /** For the log. */
  notes: string[];
  /** Those that need action. */
  warnings: string[];
}

/**
 * Prepares the stores of a process before Nest starts: the migrations of the database and the store of the queues.
 *
 * @param env gets the URL with the schema of its role, and loses that of the owner
 * @param task the purpose of the process
 * @throws {Error} naming the setting to fix
 */
export async function prepare(env: Env, task: 'serve' | 'migrate' = 'serve'): Promise<Prepared> {
  const { DATABASE_URL: url, DATABASE_OWNER_URL: ownerUrl } = env;
  const warnings = weakSecretWarnings(env);
  if (ownerUrl && task === 'serve') warnings.push(OWNER_AT_HAND);
  env.DATABASE_OWNER_URL = undefined; // nothing that serves needs it
  const notes = await prepareStores(env, url, ownerUrl);
  if (await withClient(env.DATABASE_URL, mayChangeAuditLog)) warnings.push(UNPROTECTED_AUDIT_LOG);
  return { notes, warnings };
}

const UP_TO_DATE = 'the database is up to date: it has all migrations';

const OWNER_AT_HAND =
  'DATABASE_OWNER_URL is set for a process that serves requests. An attacker who takes over the process could change the ' +
  'audit log: set DATABASE_OWNER_URL for migrate only.';

type StoreEnv = Pick<Env, 'REDIS_URL' | 'DATABASE_URL' | 'QUEUE_PREFIX'>;

/**
 * Creates the tables and prepares the store of the queues, or checks that both exist.
 *
 * @param env gets the URL with the schema of its role, so that every connection uses this schema
 * @param ownerUrl for the role that owns the tables; without it, the role of DATABASE_URL migrates if it owns them
 * @returns sentences for the log
 */
export async function prepareStores(env: StoreEnv, url: string, ownerUrl: string | undefined): Promise<string[]> {
  const own = await usableDatabase(url, 'DATABASE_URL');
  const owner = ownerUrl === undefined ? undefined : await usableDatabase(ownerUrl, 'DATABASE_OWNER_URL');
  if (owner && owner.schema !== own.schema) throw new Error(otherSchema(own, owner));
  env.DATABASE_URL = own.url;
  const migrator = owner ?? (own.facts.mayMigrate ? own : undefined);
  const { facts, setting } = migrator ?? own;
  const needsQueues = env.REDIS_URL === undefined;
  const fault = creationFault(facts, { setting, needsQueues });
  if (fault) throw new Error(fault);
  const notes = await withConnectHint(setting, async () => {
    const applied = migrator ? await applyMigrations(migrator.url) : await checkMigrated(own.url);
    const creator = facts.mayCreateSchemas ? migrator?.url : undefined;
    const warnings = await prepareQueueStore(env, creator);
    return [applied.length > 0 ? `applied the migrations ${applied.join(', ')}` : UP_TO_DATE, ...warnings];
  });
  if (migrator !== own) await checkRuntimeRights(own.url);
  return notes;
}

/** A database that the service can use. */
interface UsableDatabase {
  /** With the schema. */
  readonly url: string;
  readonly setting: string;
  readonly schema: string;
  readonly facts: DatabaseFacts;
}

/** @throws {Error} one sentence, if the service cannot use it */
async function usableDatabase(url: string, setting: string): Promise<UsableDatabase> {
  return withConnectHint(setting, () =>
    withClient(url, async (client) => {
      const facts = await readDatabaseFacts(client);
      const fault = databaseFault(facts, setting);
      if (fault) throw new Error(fault);
      const schema = facts.schema as string;
      return { url: inSchema(url, schema), setting, schema, facts };
    }),
  );
}

const otherSchema = (own: UsableDatabase, owner: UsableDatabase) =>
  `The role of DATABASE_URL uses the schema ${own.schema}, that of DATABASE_OWNER_URL the schema ${owner.schema}. Run ` +
  'prisma/roles.sql as the role of DATABASE_OWNER_URL, or set the search_path of the role of DATABASE_URL.';

/** @throws {Error} naming the migrations that a role which owns nothing can't apply */
async function checkMigrated(url: string): Promise<string[]> {
  const missing = await withClient(url, missingMigrations);
  if (missing.length === 0) return [];
  throw new Error(
    `The database lacks the migrations ${missing.map(({ name }) => name).join(', ')}, and the role of DATABASE_URL does not own its tables: ` +
      'run migrate first (npm start migrate), with DATABASE_OWNER_URL of the role that owns them.',
  );
}
