import { createCipheriv, createDecipheriv } from 'node:crypto';

/** Where a sealed value stands; bound to it as additional data, so that it can't be moved to another place. */
export interface SealedPlace {
  table: string;
  column: string;
  /** The row's identity: its primary key, or another key that never changes. */
  row: string;
}

/** A key of 32 bytes for AES-256 and the name by which sealed values refer to it. */
export interface DataKey {
  id: string;
  key: Buffer;
}

const VERSION = 1;
const KEY_NAME = /^[A-Za-z0-9_-]{1,32}$/; // as in DATA_KEYS
export const NONCE_BYTES = 12; // NIST SP 800-38D §5.2.1.1
const TAG_BYTES = 16;

/** Each name with its length before it (two bytes), so that no two places spell the same data. */
function additionalData(place: SealedPlace, header: Buffer): Buffer {
  const names = [place.table, place.column, place.row];
  const size = names.reduce((sum, name) => sum + 2 + Buffer.byteLength(name, 'utf8'), header.length);
  const data = Buffer.allocUnsafe(size);
  let at = header.copy(data);
  for (const name of names) {
    const length = data.write(name, at + 2, 'utf8');
    at = data.writeUInt16BE(length, at) + length;
  }
  return data;
}

const headers = new WeakMap<DataKey, Buffer>();

function headerOf(dataKey: DataKey): Buffer {
  let header = headers.get(dataKey);
  if (!header) {
    const id = Buffer.from(dataKey.id, 'utf8');
    header = Buffer.concat([Buffer.from([VERSION, id.length]), id]);
    headers.set(dataKey, header);
  }
  return header;
}

/**
 * Seals a value with AES-256-GCM (NIST SP 800-38D). Layout: version, length of the key's name, its name, nonce,
 * ciphertext, tag.
 *
 * @param nonce 12 random bytes, never used twice with one key
 */
export function sealBytes(dataKey: DataKey, nonce: Buffer, place: SealedPlace, plain: Buffer): Buffer {
  const header = headerOf(dataKey);
  const cipher = createCipheriv('aes-256-gcm', dataKey.key, nonce);
  cipher.setAAD(additionalData(place, header));
  return Buffer.concat([header, nonce, cipher.update(plain), cipher.final(), cipher.getAuthTag()]);
}

/** The name of the key that sealed a value. @throws {Error} when the bytes are no sealed value */
export function sealedBy(sealed: Buffer): string {
  const length = sealed[0] === VERSION ? (sealed[1] ?? 0) : 0;
  const id = sealed.toString('utf8', 2, 2 + length);
  if (!KEY_NAME.test(id) || sealed.length < 2 + length + NONCE_BYTES + TAG_BYTES) {
    throw new Error('A sealed value in the database is damaged; restore it from a backup.');
  }
  return id;
}

/** Opens what `sealBytes` made. @throws {Error} when the key, the place or the bytes are not those of the sealing */
export function openBytes(dataKey: DataKey, place: SealedPlace, sealed: Buffer): Buffer {
  const start = 2 + Buffer.byteLength(dataKey.id, 'utf8');
  const tag = sealed.length - TAG_BYTES;
  const decipher = createDecipheriv('aes-256-gcm', dataKey.key, sealed.subarray(start, start + NONCE_BYTES));
  decipher.setAAD(additionalData(place, sealed.subarray(0, start)));
  decipher.setAuthTag(sealed.subarray(tag));
  try {
    return Buffer.concat([decipher.update(sealed.subarray(start + NONCE_BYTES, tag)), decipher.final()]);
  } catch {
    throw new Error(
      `A sealed value of ${place.table}.${place.column} does not open: wrong key ${dataKey.id}, or it was tampered with.`,
    );
  }
}
