import { createCipheriv, createDecipheriv, createHmac, createSecretKey, type KeyObject } from 'node:crypto';
import { Random } from '../config/random.js';
import { Problem } from '../http/problem/problem.js';
import { type Health, HealthIndicator } from '../http/server/health-indicator.js';
import type { DataKey } from './data-keys.js';

/** Where a sealed value stands; bound to it as additional data, so that it can't be moved to another place. */
export interface SealedPlace {
  table: string;
  column: string;
  /** The row's identity: its primary key, or another key that never changes. */
  row: string;
}

const VERSION = 1;
const KEY_NAME = /^[A-Za-z0-9_-]{1,32}$/; // as in DATA_KEYS
const NONCE_BYTES = 12; // NIST SP 800-38D §5.2.1.1
const TAG_BYTES = 16;

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
  private readonly sealing: DataKey & { header: Buffer };
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
    const id = Buffer.from(first.id, 'utf8');
    this.sealing = { ...first, header: Buffer.concat([Buffer.from([VERSION, id.length]), id]) };
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

  /**
   * Seals a text or bytes for one place in the database with AES-256-GCM (NIST SP 800-38D). Layout: version, length of
   * the key's name, its name, nonce, ciphertext, tag.
   */
  seal(place: SealedPlace, plain: string | Buffer): Buffer {
    const { key, header } = this.sealing;
    const nonce = this.nextNonce();
    const cipher = createCipheriv('aes-256-gcm', key, nonce);
    cipher.setAAD(additionalData(place, header));
    const text = typeof plain === 'string' ? cipher.update(plain, 'utf8') : cipher.update(plain);
    return Buffer.concat([header, nonce, text, cipher.final(), cipher.getAuthTag()]);
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
    const start = 2 + Buffer.byteLength(id, 'utf8');
    const tag = bytes.length - TAG_BYTES;
    const decipher = createDecipheriv('aes-256-gcm', key.key, bytes.subarray(start, start + NONCE_BYTES));
    decipher.setAAD(additionalData(place, bytes.subarray(0, start)));
    decipher.setAuthTag(bytes.subarray(tag));
    try {
      return Buffer.concat([decipher.update(bytes.subarray(start + NONCE_BYTES, tag)), decipher.final()]);
    } catch {
      throw new Error(
        `A sealed value of ${place.table}.${place.column} does not open: wrong key ${id}, or it was tampered with.`,
      );
    }
  }

  /**
   * A keyed HMAC-SHA-256 (RFC 2104) of a value: equal values of one purpose have equal fingerprints, and without the
   * key values can't be tried out.
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

/** A column of values that are sealed as JSON, each for its row. */
export class SealedColumn<Value> {
  constructor(
    private readonly vault: Vault,
    private readonly table: string,
    private readonly column: string,
  ) {}

  seal(row: string, value: Value): Buffer {
    return this.vault.seal({ table: this.table, column: this.column, row }, JSON.stringify(value ?? null));
  }

  /** Null stays null. */
  sealNullable(row: string, value: Value | null | undefined): Buffer | null {
    return value == null ? null : this.seal(row, value);
  }

  open(row: string, sealed: Uint8Array): Value;
  open(row: string, sealed: Uint8Array | null): Value | null;
  open(row: string, sealed: Uint8Array | null): Value | null {
    if (sealed === null) return null;
    return JSON.parse(this.vault.open({ table: this.table, column: this.column, row }, sealed)) as Value;
  }
}

/** The name of the key that sealed a value. @throws {Error} when the bytes are no sealed value */
function sealedBy(sealed: Buffer): string {
  const length = sealed[0] === VERSION ? (sealed[1] ?? 0) : 0;
  const id = sealed.toString('utf8', 2, 2 + length);
  if (!KEY_NAME.test(id) || sealed.length < 2 + length + NONCE_BYTES + TAG_BYTES) {
    throw new Error('A sealed value in the database is damaged; restore it from a backup.');
  }
  return id;
}

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
