import type { Client } from 'pg';
import { Random } from '../config/random.js';
import type { SecretKey } from './keys.js';
import { Vault } from './vault.js';
import { FINGERPRINT_PLACE } from './vault.module.js';

type Sql = Pick<Client, 'query'>;

/** Opens the vault of a database without creating keys. @throws {Error} as `wrappedKey` */
export async function readVault(sql: Sql, keys: SecretKey[]): Promise<Vault> {
  const wrapping = new Vault(keys, Buffer.alloc(32), new Random());
  return new Vault(keys, wrapping.openBytes(FINGERPRINT_PLACE, await wrappedKey(sql)), new Random());
}

/** The encrypted fingerprint key. @throws {Error} if the service never started on this database */
export async function wrappedKey(sql: Sql): Promise<Buffer> {
  const found = await findWrappedKey(sql);
  if (!found) throw new Error('The database is empty: start the service once.');
  return found;
}

/** The encrypted fingerprint key; undefined if there is none yet. */
export async function findWrappedKey(sql: Sql): Promise<Buffer | undefined> {
  const { rows: tables } = await sql.query<{ isThere: boolean }>(
    `SELECT to_regclass('vault_keys') IS NOT NULL AS "isThere"`,
  );
  if (!tables[0]?.isThere) return undefined;
  const text = 'SELECT wrapped FROM vault_keys WHERE purpose = $1';
  return (await sql.query<{ wrapped: Buffer }>(text, [FINGERPRINT_PLACE.row])).rows[0]?.wrapped;
}
