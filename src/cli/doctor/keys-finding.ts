import pg from 'pg';
import { Random } from '../../config/random.js';
import { SESSION_OPTIONS } from '../../database/database.js';
import { parseDataKeys } from '../../vault/data-keys.js';
import { Vault } from '../../vault/vault.js';
import { FINGERPRINT_PLACE } from '../../vault/vault.module.js';
import type { Finding } from './finding.js';

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
