import type { Client } from 'pg';
import { KeyedHashes } from './keyed-hashes.js';
import { KEY_SETTINGS, type KeySetting, type SecretKey } from './keys.js';

/** The keys of a process, by their setting. */
export type ServiceKeys = Record<KeySetting, SecretKey[]>;

/** A key that stored values need. The hash shows whether another key has its id. */
interface KeyUse {
  setting: KeySetting;
  id: string;
  hash: Buffer;
}

type Sql = Pick<Client, 'query'>;

/**
 * Registers the first keys of a process, with which it makes values, before it makes any.
 *
 * @throws {Error} naming setting and id, if a registered key is missing or is another key
 */
export async function registerKeys(sql: Sql, keys: ServiceKeys): Promise<void> {
  const registered = await readUses(sql);
  refuse(registered, keys);
  const made = KEY_SETTINGS.flatMap((setting) => keys[setting].slice(0, 1).map((key) => useOf(setting, key)));
  const missing = made.filter(({ setting, id }) => !registered.some((use) => use.setting === setting && use.id === id));
  if (missing.length === 0) return;
  await sql.query(
    `INSERT INTO key_uses (setting, id, check_hash) SELECT * FROM unnest($1::text[], $2::text[], $3::bytea[])
     ON CONFLICT (setting, id) DO NOTHING`,
    [missing.map(({ setting }) => setting), missing.map(({ id }) => id), missing.map(({ hash }) => hash)],
  );
  refuse(await readUses(sql), keys); // another process may have registered another key with the same id
}

/** The faults of keys, each as a sentence; undefined if the service never started on this database. */
export async function keyFaults(sql: Sql, keys: ServiceKeys): Promise<string[] | undefined> {
  const text = `SELECT to_regclass('key_uses') IS NOT NULL AS "isThere"`;
  if (!(await sql.query<{ isThere: boolean }>(text)).rows[0]?.isThere) return undefined;
  const uses = await readUses(sql);
  return uses.length === 0 ? undefined : uses.flatMap((use) => faultOf(use, keys) ?? []);
}

/** Forgets keys that no stored value needs. @returns the ids that were registered */
export async function forgetKeys(sql: Sql, setting: KeySetting, ids: readonly string[]): Promise<string[]> {
  const text = 'DELETE FROM key_uses WHERE setting = $1 AND id = ANY ($2::text[]) RETURNING id';
  return (await sql.query<{ id: string }>(text, [setting, ids])).rows.map(({ id }) => id);
}

async function readUses(sql: Sql): Promise<KeyUse[]> {
  return (await sql.query<KeyUse>('SELECT setting, id, check_hash AS hash FROM key_uses ORDER BY setting, id')).rows;
}

function refuse(uses: readonly KeyUse[], keys: ServiceKeys): void {
  for (const use of uses) {
    const fault = faultOf(use, keys);
    if (fault) throw new Error(fault);
  }
}

function faultOf({ setting, id, hash }: KeyUse, keys: ServiceKeys): string | undefined {
  const key = keys[setting].find((one) => one.id === id);
  if (!key) return `${setting} lacks the key ${id}, which stored data needs. Add it after the first key.`;
  if (useOf(setting, key).hash.equals(hash)) return undefined;
  return `The key ${id} in ${setting} is not the key ${id} that stored data needs. Restore that key, and give a new key another id.`;
}

function useOf(setting: KeySetting, key: SecretKey): KeyUse {
  return { setting, id: key.id, hash: new KeyedHashes([key]).of('key-use', setting) };
}
