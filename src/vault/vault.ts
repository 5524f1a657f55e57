import { createHmac, createSecretKey, type KeyObject } from 'node:crypto';
import { Random } from '../config/random.js';
import { Problem } from '../http/problem/problem.js';
import { type Health, HealthIndicator } from '../http/server/health-indicator.js';
import { type DataKey, NONCE_BYTES, openBytes, type SealedPlace, sealBytes, sealedBy } from './sealed-text.js';

export type { SealedPlace } from './sealed-text.js';

/** Nonces drawn at once: a system call for twelve bytes costs as much as sealing a short text. */
const NONCES_DRAWN = 512;

/**
 * A sealed value was made with a key that DATA_KEYS lacks. Its message names the key and the column, never the content.
 * It is a 503: the request is in order, and an operator has to act.
 */
export class MissingDataKey extends Problem {
  override readonly name = 'MissingDataKey';

  /** @param place table and column, e.g. `people.profile` */
  constructor(keyId: string, place: string) {
    const detail = `DATA_KEYS lacks the key ${keyId}, which sealed ${place}; add it behind the first.`;
    super(503, 'data-key-missing', detail, { extensions: { missing: [keyId] } });
  }
}

/** Seals personal data for storage and makes keyed fingerprints of it for equality. */
export class Vault {
  private readonly keys: Map<string, DataKey>;
  private readonly sealing: DataKey;
  private readonly missing = new Set<string>();
  private readonly fingerprintKey: KeyObject;
  private nonces: Buffer = Buffer.alloc(0);

  /**
   * @param keys the first seals, all open
   * @param fingerprintKey 32 bytes that never change for one database
   */
  constructor(
    keys: DataKey[],
    fingerprintKey: Buffer,
    private readonly random: Random,
  ) {
    const [first] = keys;
    if (!first) throw new Error('DATA_KEYS holds no key; add one as id:base64.');
    this.sealing = first;
    this.fingerprintKey = createSecretKey(fingerprintKey);
    this.keys = new Map(keys.map((key) => [key.id, key]));
  }

  /** A key that was dropped from DATA_KEYS too early: what it had sealed can't be read. */
  @HealthIndicator('vault')
  health(): Health {
    const missing = [...this.missing].sort().join(', ');
    if (missing === '') return { status: 'ok' };
    const reason = `DATA_KEYS lacks ${missing}, which sealed data that is in use: add what is missing behind the first key and restart; nothing is lost.`;
    return { status: 'degraded', reason, facts: { missing } };
  }

  /** Seals a text or bytes for one place in the database. */
  seal(place: SealedPlace, plain: string | Buffer): Buffer {
    const bytes = typeof plain === 'string' ? Buffer.from(plain, 'utf8') : plain;
    return sealBytes(this.sealing, this.nextNonce(), place, bytes);
  }

  /** Opens a sealed text. @throws {Error} naming the missing key or the damaged column, never the content */
  open(place: SealedPlace, sealed: Uint8Array): string {
    return this.openBytes(place, sealed).toString('utf8');
  }

  /** Opens sealed bytes. @throws {Error} as `open` */
  openBytes(place: SealedPlace, sealed: Uint8Array): Buffer {
    const bytes = Buffer.from(sealed.buffer, sealed.byteOffset, sealed.byteLength);
    const id = sealedBy(bytes);
    const key = this.keys.get(id);
    if (!key) {
      this.missing.add(id);
      throw new MissingDataKey(id, `${place.table}.${place.column}`);
    }
    return openBytes(key, place, bytes);
  }

  /**
   * A keyed HMAC-SHA-256 (RFC 2104) of a value: equal values of one purpose have equal fingerprints, and without the
   * key nobody can try out values.
   *
   * @param purpose keeps fingerprints of different things apart, e.g. `email`
   */
  fingerprint(purpose: string, value: string): Buffer {
    return createHmac('sha256', this.fingerprintKey).update(`${purpose}\0${value}`).digest();
  }

  private nextNonce(): Buffer {
    if (this.nonces.length === 0) this.nonces = this.random.bytes(NONCE_BYTES * NONCES_DRAWN);
    const nonce = this.nonces.subarray(0, NONCE_BYTES);
    this.nonces = this.nonces.subarray(NONCE_BYTES);
    return nonce;
  }
}
