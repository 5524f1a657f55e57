import path from 'node:path';
import type { Client } from 'pg';
import type { Env } from '../../config/env.js';
import { withClient } from '../../database/connect/session.js';
import type { ServiceKeys } from '../../vault/key-uses.js';
import { KEY_SETTINGS, type KeySetting, parseKeys, readKeptKeys } from '../../vault/keys.js';
import { CliFault } from '../api/cli-fault.js';
import { serviceSettings } from '../api/service-settings.js';
import { withServiceDatabase } from './service-database.js';

/**
 * Runs the work of a command on the service's database, with its keys, whether the service runs or not.
 *
 * @param role whose connection the work gets
 */
export async function withServiceData<T>(
  work: (client: Client, keys: ServiceKeys) => Promise<T>,
  role: 'service' | 'owner' = 'service',
): Promise<T> {
  const { env, demo } = serviceSettings();
  console.error(
    `Database: ${placeOf(env)}${demo ? " (this clone's demo, because this environment has no settings of a service)" : ''}`,
  );
  return withServiceDatabase(env, role, async (url) => {
    const pairs = await Promise.all(KEY_SETTINGS.map(async (name) => [name, parseKeys(await keysOf(env, name))]));
    return withClient(url, (client) => work(client, Object.fromEntries(pairs) as ServiceKeys));
  });
}

/** The location of the database, without user and password. */
function placeOf({ DATABASE_URL: url, DATA_DIR: folder }: Env): string {
  if (url === undefined) return `the embedded PostgreSQL in ${path.resolve(folder)}`;
  const { host, pathname } = new URL(url);
  return `${host}${pathname}`;
}

async function keysOf(env: Env, name: KeySetting): Promise<string[]> {
  const given = env[name];
  if (given) return given;
  if (env.DATABASE_URL === undefined) return readKeptKeys(path.resolve(env.DATA_DIR), name);
  throw new CliFault(`${name} is not set. Set it as for the service.`);
}
