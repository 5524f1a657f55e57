import type pg from 'pg';
import { Random } from '../src/config/random.js';
import { FormerLinks } from '../src/people/store/former-links.repository.js';
import { parseDataKeys } from '../src/vault/data-keys.js';
import { Vault } from '../src/vault/vault.js';

/** Seals which users of the platform people are whom a test or a measurement stored by itself. */
export async function sealLinks(sql: Pick<pg.Client, 'query'>, dataKeys: string): Promise<void> {
  const vault = new Vault(parseDataKeys([dataKeys]), Buffer.alloc(32), new Random(), { readsFormerLayout: true });
  await new FormerLinks(sql, vault).seal(() => undefined);
}
