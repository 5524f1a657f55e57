import path from 'node:path';
import type { Env } from './config/env.js';
import { Random } from './config/random.js';
import { explained } from './database/connect-fault.js';
import { withClient } from './database/database.js';
import { startEmbeddedPostgres } from './database/embedded-postgres.js';
import { applyMigrations } from './database/migrations.js';
import { checkRuntimeRights, commitFault, grantRuntimeRights } from './database/runtime-role.js';
import { prepareQueueStore } from './queue/backend/backend.js';
import { keptDataKeys } from './vault/data-keys.js';

/**
 * Settles what a process needs before Nest starts: the database (the embedded one when no DATABASE_URL is set), its
 * migrations, the queue's store and the data keys. What is settled is written into the environment.
 *
 * @returns that, sentences for the log, and how the process lets go of it
 * @throws {Error} naming the setting to mend
 */
export async function prepare(env: Env) {
  const notes: string[] = [];
  let release = async () => {};
  if (!env.DATABASE_URL) {
    const embedded = await startEmbeddedPostgres({ dataRoot: path.resolve(env.DATA_DIR) });
    env.DATABASE_URL = embedded.url;
    release = () => embedded.release();
    notes.push('PostgreSQL is the embedded one; set DATABASE_URL for production');
    env.DATA_KEYS ??= await keptDataKeys(path.resolve(env.DATA_DIR), new Random());
  }
  if (!env.DATA_KEYS)
    throw new Error(
      'DATA_KEYS is not set; with a database of your own give one as id:base64 (openssl rand -base64 32).',
    );
  notes.push(...(await prepareStores(env, env.DATABASE_URL)));
  return { env, notes, release };
}

/** Tables, queues and, where the runtime role doesn't own them, its rights. @returns sentences for the log */
async function prepareStores(env: Env, url: string): Promise<string[]> {
  const ownerUrl = env.DATABASE_OWNER_URL ?? url;
  const fault = await explained('DATABASE_URL', () => withClient(url, commitFault));
  if (fault) throw new Error(fault);
  const notes = await explained(env.DATABASE_OWNER_URL ? 'DATABASE_OWNER_URL' : 'DATABASE_URL', async () => {
    const applied = await applyMigrations(ownerUrl);
    const warning = await prepareQueueStore(env, ownerUrl);
    if (env.DATABASE_OWNER_URL) await grantRuntimeRights(ownerUrl, url);
    return [applied.length > 0 ? `applied the migrations ${applied.join(', ')}` : '', warning ?? ''];
  });
  if (env.DATABASE_OWNER_URL) await checkRuntimeRights(url);
  return notes.filter((note) => note !== '');
}
