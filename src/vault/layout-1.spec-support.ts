import { createCipheriv, randomBytes } from 'node:crypto';
import type { DataKey } from './data-keys.js';
import type { SealedPlace } from './vault.js';

/** A value as layout 1 had it: version, key's name, nonce, ciphertext, tag, bound to its row alone. */
export function sealedInLayout1({ id, key }: DataKey, { table, column, row }: SealedPlace, plain: Buffer): Buffer {
  const header = Buffer.from([1, id.length, ...Buffer.from(id)]);
  const nonce = randomBytes(12);
  const cipher = createCipheriv('aes-256-gcm', key, nonce);
  const names = [table, column, row].flatMap((name) => {
    const bytes = Buffer.from(name);
    return [Buffer.from([bytes.length >> 8, bytes.length & 255]), bytes];
  });
  cipher.setAAD(Buffer.concat([header, ...names]));
  return Buffer.concat([header, nonce, cipher.update(plain), cipher.final(), cipher.getAuthTag()]);
}
