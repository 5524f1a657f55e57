import { createHmac, createSecretKey, hkdfSync, type KeyObject, timingSafeEqual } from 'node:crypto';
import type { SecretKey } from './keys.js';

/** Bytes of an HMAC-SHA-256. */
const HASH_BYTES = 32;

/**
 * Keyed hashes (HMAC-SHA-256, RFC 2104) that name their key: length of its id (one byte), the id, 32 bytes. Without the
 * key, nobody can make one or test a guess. Each purpose has a subkey (HKDF, RFC 5869), so that a hash of one purpose
 * says nothing about another.
 */
export class KeyedHashes {
  private readonly subkeys = new Map<string, KeyObject>();
  private readonly byId: ReadonlyMap<string, SecretKey>;
  private readonly first: SecretKey;

  /** @param keys the first makes hashes, all are accepted */
  constructor(keys: readonly SecretKey[]) {
    const [first] = keys;
    if (!first) throw new Error('There is no key; give one as id:base64.');
    this.first = first;
    this.byId = new Map(keys.map((key) => [key.id, key]));
  }

  /** The hash of a value by the first key. @param purpose separates kinds of values, for example `email` */
  of(purpose: string, value: string): Buffer {
    return this.by(this.first, purpose, value);
  }

  /** The hashes of a value by all accepted keys, the first key's first. */
  all(purpose: string, value: string): Buffer[] {
    return [...this.byId.values()].map((key) => this.by(key, purpose, value));
  }

  /** True if a hash is one of this value by an accepted key. Takes the same time wherever the two differ. */
  matches(purpose: string, value: string, hash: Uint8Array): boolean {
    const key = this.byId.get(keyIdOf(hash) ?? '');
    if (!key) return false;
    const right = this.by(key, purpose, value);
    return right.length === hash.length && timingSafeEqual(right, hash);
  }

  /** True if the first key made a hash. */
  isCurrent(hash: Uint8Array): boolean {
    return keyIdOf(hash) === this.first.id;
  }

  private by({ id, key }: SecretKey, purpose: string, value: string): Buffer {
    return Buffer.concat([
      hashHeader(id),
      createHmac('sha256', this.subkey(id, key, purpose))
        .update(value)
        .digest(),
    ]);
  }

  private subkey(id: string, key: Buffer, purpose: string): KeyObject {
    const name = `${id} ${purpose}`;
    const known = this.subkeys.get(name);
    if (known) return known;
    const made = createSecretKey(Buffer.from(hkdfSync('sha256', key, '', `notebridge ${purpose}`, 32)));
    this.subkeys.set(name, made);
    return made;
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
