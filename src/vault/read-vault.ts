import type { Client } from 'pg';
import { Random } from '../config/random.js';
import type { DataKey } from './data-keys.js';
import { isFormerLayout, Vault } from './vault.js';
import { FINGERPRINT_PLACE } from './vault.module.js';

/** The vault of a database, for a command that makes nothing. @throws {Error} when nothing was sealed there yet */
export async function readVault(client: Pick<Client, 'query'>, keys: DataKey[]): Promise<Vault> {
  const text = 'SELECT wrapped FROM vault_keys WHERE purpose = $1';
  const { rows } = await client.query<{ wrapped: Buffer }>(text, [FINGERPRINT_PLACE.row]);
  if (!rows[0]) throw new Error('The database holds nothing sealed yet; start the service once.');
  const wrapping = new Vault(keys, Buffer.alloc(32), new Random(), { readsFormerLayout: true });
  const { wrapped } = rows[0];
  return new Vault(keys, wrapping.openBytes(FINGERPRINT_PLACE, wrapped), new Random(), {
    readsFormerLayout: isFormerLayout(wrapped),
  });
}
