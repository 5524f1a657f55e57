import { createHash } from 'node:crypto';

/** SHA-256 of a key. A key is 256 random bits, so a slow hash would add nothing. */
export const hashOf = (key: string): Buffer => createHash('sha256').update(key, 'utf8').digest();

/** Every key begins with this, so that secret scanners can find one that leaked. */
const MARK = 'nb_';
const KEY = /^nb_[A-Za-z0-9_-]{43}$/;

/** Characters of a key that stay known after it was made: the mark and 36 of 256 bits. */
const PREFIX_LENGTH = MARK.length + 6;

/** Makes a key, which is shown once, and the parts that are stored. @param randomness 32 random bytes */
export function newApiKey(randomness: Buffer): { key: string; prefix: string; hash: Buffer } {
  const key = MARK + randomness.toString('base64url');
  return { key, prefix: key.slice(0, PREFIX_LENGTH), hash: hashOf(key) };
}

/** The stored start of a key; undefined for another text, which may be a password and must not be stored. */
export function prefixOf(key: string): string | undefined {
  return KEY.test(key) ? key.slice(0, PREFIX_LENGTH) : undefined;
}

/** The token of an `Authorization: Bearer` header (RFC 6750 §2.1), or undefined. */
export function bearerToken(authorization: string | undefined): string | undefined {
  return /^bearer +([\x21-\x7e]{1,512}) *$/i.exec(authorization ?? '')?.[1];
}
