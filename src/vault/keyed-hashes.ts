import { createHmac, createSecretKey, hkdfSync, type KeyObject, timingSafeEqual } from 'node:crypto';
import type { SecretKey } from './keys.js';

/** The key of one purpose, and the bytes with which its hashes begin. */
interface Subkey {
  header: Buffer;
  key: KeyObject;
}

/** Bytes of an HMAC-SHA-256. */
const HASH_BYTES = 32;

/**
 * Keyed hashes (HMAC-SHA-256, RFC 2104) that name their key: length of its id (one byte), the id, 32 bytes. Without the
 * key, no one can create one or test a guess. Each purpose has a subkey (HKDF, RFC 5869), so that a hash of one purpose
 * says nothing about another.
 */
export class KeyedHashes {
  /** Subkeys by purpose, for each key in the order of the keys. */
  private readonly subkeys = new Map<string, Map<string, Subkey>>();
  private readonly first: SecretKey;

  /** @param keys the first makes hashes, all are accepted */
  constructor(private readonly keys: readonly SecretKey[]) {
    const [first] = keys;
    if (!first) throw new Error('There is no key; give one as id:base64.');
    this.first = first;
  }

  /** The hash of a value by the first key. @param purpose separates kinds of values, for example `email` */
  of(purpose: string, value: string): Buffer {
    return this.by(this.first.id, purpose, value);
  }

  /** The same in hexadecimal, which is faster. */
  hex(purpose: string, value: string): string {
    const { header, key } = this.subkey(purpose, this.first.id);
    return header.toString('hex') + createHmac('sha256', key).update(value).digest('hex');
  }

  /** True if a hash is one of this value by an accepted key. Takes constant time. */
  matches(purpose: string, value: string, hash: Uint8Array): boolean {
    const id = keyIdOf(hash);
    if (id === undefined || !this.keys.some((key) => key.id === id)) return false;
    const right = this.by(id, purpose, value);
    return right.length === hash.length && timingSafeEqual(right, hash);
  }

  /** True if the first key made a hash. */
  isCurrent(hash: Uint8Array): boolean {
    return keyIdOf(hash) === this.first.id;
  }

  private by(id: string, purpose: string, value: string): Buffer {
    const { header, key } = this.subkey(purpose, id);
    return Buffer.concat([header, createHmac('sha256', key).update(value).digest()]);
  }

  private subkey(purpose: string, id: string): Subkey {
    const known = this.subkeys.get(purpose);
    if (known) return known.get(id) as Subkey;
    const info = `notebridge ${purpose}`;
    const made = this.keys.map(({ id, key }): [string, Subkey] => {
      const subkey = createSecretKey(Buffer.from(hkdfSync('sha256', key, '', info, 32)));
      return [id, { header: hashHeader(id), key: subkey }];
    });
    this.subkeys.set(purpose, new Map(made));
    return this.subkey(purpose, id);
  }
}

/** The first bytes of every hash by a key. */
export function hashHeader(keyId: string): Buffer {
  const id = Buffer.from(keyId, 'utf8');
  return Buffer.concat([Buffer.from([id.length]), id]);
}

/** The id of the key that made a hash; undefined for other bytes. */
export function keyIdOf(hash: Uint8Array): string | undefined {
  const [length = 0] = hash;
  return hash.length === 1 + length + HASH_BYTES
    ? Buffer.from(hash.subarray(1, 1 + length)).toString('utf8')
    : undefined;
}
