import { AUDIT_KEYS, DATA_KEYS, FINGERPRINT_KEYS } from '../../harness/world/settings.js';
import type { World } from '../../harness/world/world.js';
import { type RotationKind, rotateOn } from '../../src/cli/data/rotate-keys.js';
import { withPrisma } from '../../src/database/with-prisma.js';
import { parseKeys } from '../../src/vault/keys.js';

/** A key setting of one key. */
export const keyPair = (name: string, byte: number): string => `${name}:${Buffer.alloc(32, byte).toString('base64')}`;

const USUAL = { DATA_KEYS, FINGERPRINT_KEYS, AUDIT_KEYS };

/** Rotates keys on the world's database, as `notebridge keys rotate` does. */
export async function rotate(world: World, kind: RotationKind, settings: Partial<typeof USUAL>) {
  const all = { ...USUAL, ...settings };
  const parsed = (name: keyof typeof USUAL) => parseKeys(all[name].split(','));
  const keys = {
    DATA_KEYS: parsed('DATA_KEYS'),
    FINGERPRINT_KEYS: parsed('FINGERPRINT_KEYS'),
    AUDIT_KEYS: parsed('AUDIT_KEYS'),
  };
  const client = await world.database.pool.connect();
  try {
    return await withPrisma(world.database.url, (prisma) => rotateOn(client, prisma, kind, keys));
  } finally {
    client.release(true); // a rotation changes settings of its connection
  }
}
