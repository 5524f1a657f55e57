import path from 'node:path';
import type { Client } from 'pg';
import type { Env } from '../../config/env.js';
import { withServiceDatabase } from '../../database/command-database.js';
import { withClient } from '../../database/database.js';
import { type DataKey, parseDataKeys, readKeptDataKeys } from '../../vault/data-keys.js';
import { CliFault } from '../api/cli-fault.js';
import { serviceSettings } from '../api/service-settings.js';

/**
 * Runs the work of a command on the service's database, with its data keys, whether the service runs or not.
 *
 * @param work gets a connection of the runtime role
 */
export async function withServiceData<T>(work: (client: Client, keys: DataKey[]) => Promise<T>): Promise<T> {
  const { env, demo } = serviceSettings();
  if (demo) console.error("No settings of a service are set here, so this is the demo's database.");
  return withServiceDatabase(env, async (url) => {
    const keys = parseDataKeys(await dataKeysOf(env));
    return withClient(url, (client) => work(client, keys));
  });
}

async function dataKeysOf(env: Env): Promise<string[]> {
  if (env.DATA_KEYS) return env.DATA_KEYS;
  if (env.DATABASE_URL === undefined) return readKeptDataKeys(path.resolve(env.DATA_DIR));
  throw new CliFault('DATA_KEYS is not set: give it as the service has it.');
}
