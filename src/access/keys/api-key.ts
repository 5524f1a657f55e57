import { createHash } from 'node:crypto';

/** Every key begins with this, so that secret scanners can find one that leaked. */
const MARK = 'nb_';

/** Characters of a key that stay known after it was made: the mark and 36 of 256 bits. */
const PREFIX_LENGTH = MARK.length + 6;

/** A key as it is shown once, and what is kept of it. */
export interface NewApiKey {
  key: string;
  prefix: string;
  hash: Buffer;
}

/** SHA-256 of a key. A key is 256 random bits, so a slow hash would add nothing. */
export function hashOfKey(key: string): Buffer {
  return createHash('sha256').update(key, 'utf8').digest();
}

/** Makes a key. @param randomness 32 random bytes */
export function newApiKey(randomness: Buffer): NewApiKey {
  const key = MARK + randomness.toString('base64url');
  return { key, prefix: key.slice(0, PREFIX_LENGTH), hash: hashOfKey(key) };
}

/** Answers whether a text has the form of a key that `newApiKey` makes. */
export function looksLikeApiKey(text: string): boolean {
  return /^nb_[A-Za-z0-9_-]{43}$/.test(text);
}

/** The token of an `Authorization: Bearer` header (RFC 6750 §2.1), or undefined. */
export function bearerToken(authorization: string | undefined): string | undefined {
  return /^bearer +([\x21-\x7e]{1,512}) *$/i.exec(authorization ?? '')?.[1];
}
