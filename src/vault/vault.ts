import { createCipheriv, createDecipheriv } from 'node:crypto';
import { Random } from '../config/random.js';
import { type Health, HealthIndicator, healthOf } from '../monitoring/health-indicator.js';
import type { SecretKey } from './keys.js';
import { MissingDataKey, UnreadableValue } from './unreadable-value.js';

/** The place of an encrypted value in the database, which is its additional data (AAD): a moved value does not open. */
export interface SealedPlace {
  table: string;
  column: string;
  /** The row's identity: its primary key, or another key that never changes. */
  row: string;
}

/** Values of the metric's label `cause`. */
export const UNREADABLE_CAUSES = ['missing-key', 'damaged'] as const;
type UnreadableCause = (typeof UNREADABLE_CAUSES)[number];

export interface VaultUse {
  /** Called for each value that does not open. @param isNew true for the first report of a damaged value */
  onUnreadable?: (place: SealedPlace, cause: UnreadableCause, isNew: boolean) => void;
}

/** The first byte of every encrypted value. */
const FORMAT = 1;

/** Maximum number of damaged values, and of missing keys, that the health check remembers; more are only counted. */
const MAX_REMEMBERED = 1_000;

const KEY_NAME = /^[A-Za-z0-9_-]{1,32}$/; // as in DATA_KEYS
const NONCE_BYTES = 12; // NIST SP 800-38D §5.2.1.1
const TAG_BYTES = 16;

/** Nonces per system call, because one call for 12 bytes costs as much as sealing a short text. */
const NONCE_BATCH = 512;

/** Encrypts personal data for storage. */
export class Vault {
  private readonly keys: Map<string, SecretKey>;
  private readonly sealing: SecretKey & { header: Buffer };
  private readonly missing = new Set<string>();
  /** Places whose value did not open at the last attempt. */
  private readonly damaged = new Set<string>();
  private nonces: Buffer = Buffer.alloc(0);

  /** @param keys the first encrypts, all decrypt */
  constructor(
    keys: SecretKey[],
    private readonly random: Random,
    private readonly use: VaultUse = {},
  ) {
    const [first] = keys;
    if (!first) throw new Error('DATA_KEYS holds no key; add one as id:base64.');
    this.sealing = { ...first, header: sealedHeader(first.id) };
    this.keys = new Map(keys.map((key) => [key.id, key]));
  }

  /** Degraded while a key is missing from DATA_KEYS or a value does not open. */
  @HealthIndicator({ name: 'vault' })
  health(): Health {
    const keys = [...this.missing].sort().join(', ');
    const count = this.damaged.size;
    return healthOf([
      keys !== '' && { code: 'missing-data-key', values: { keys } },
      count > 0 && { code: 'unreadable-values', values: { count } },
    ]);
  }

  /**
   * Encrypts a text or bytes for one place in the database with AES-256-GCM (NIST SP 800-38D). Format: version, length
   * of the key's name, its name, nonce, ciphertext, tag.
   */
  seal(place: SealedPlace, plain: string | Buffer): Buffer {
    const { key, header } = this.sealing;
    const nonce = this.nextNonce();
    const cipher = createCipheriv('aes-256-gcm', key, nonce);
    cipher.setAAD(additionalData(place, header));
    const text = typeof plain === 'string' ? cipher.update(plain, 'utf8') : cipher.update(plain);
    return Buffer.concat([header, nonce, text, cipher.final(), cipher.getAuthTag()]);
  }

  /** Decrypts a text. @throws {Error} naming the missing key or the damaged column, never the content */
  open(place: SealedPlace, sealed: Uint8Array): string {
    return this.openBytes(place, sealed).toString('utf8');
  }

  /** Decrypts bytes. @throws {Error} as `open` */
  openBytes(place: SealedPlace, sealed: Uint8Array): Buffer {
    const bytes = Buffer.from(sealed.buffer, sealed.byteOffset, sealed.byteLength);
    const by = headerOf(bytes);
    if (!by || bytes.length < by.bytes + NONCE_BYTES + TAG_BYTES) throw this.refused(place);
    const key = this.keys.get(by.keyId);
    if (!key) {
      if (this.missing.size < MAX_REMEMBERED) this.missing.add(by.keyId);
      this.report(place, 'missing-key');
      throw new MissingDataKey(by.keyId, `${place.table}.${place.column}`);
    }
    const start = by.bytes;
    const tag = bytes.length - TAG_BYTES;
    const decipher = createDecipheriv('aes-256-gcm', key.key, bytes.subarray(start, start + NONCE_BYTES));
    decipher.setAAD(additionalData(place, bytes.subarray(0, start)));
    decipher.setAuthTag(bytes.subarray(tag));
    let plain: Buffer;
    try {
      plain = Buffer.concat([decipher.update(bytes.subarray(start + NONCE_BYTES, tag)), decipher.final()]);
    } catch {
      throw this.refused(place);
    }
    if (this.damaged.size > 0) this.damaged.delete(nameOf(place));
    return plain;
  }

  private refused(place: SealedPlace): UnreadableValue {
    this.report(place, 'damaged');
    return new UnreadableValue(`${place.table}.${place.column}`);
  }

  private report(place: SealedPlace, cause: UnreadableCause): void {
    const name = nameOf(place);
    const isNew = cause === 'damaged' && !this.damaged.has(name) && this.damaged.size < MAX_REMEMBERED;
    if (isNew) this.damaged.add(name);
    this.use.onUnreadable?.(place, cause, isNew);
  }

  private nextNonce(): Buffer {
    if (this.nonces.length === 0) this.nonces = this.random.bytes(NONCE_BYTES * NONCE_BATCH);
    const nonce = this.nonces.subarray(0, NONCE_BYTES);
    this.nonces = this.nonces.subarray(NONCE_BYTES);
    return nonce;
  }
}

/** A column whose values are JSON, encrypted for their row. */
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

/** The first bytes of every value that is encrypted with a key. */
export function sealedHeader(keyId: string): Buffer {
  const id = Buffer.from(keyId, 'utf8');
  return Buffer.concat([Buffer.from([FORMAT, id.length]), id]);
}

/** The name of the key in the header of an encrypted value, and the header's bytes; undefined if there is no valid header. */
export function headerOf(sealed: Buffer): { keyId: string; bytes: number } | undefined {
  const [format, length = 0] = sealed;
  const keyId = sealed.toString('utf8', 2, 2 + length);
  return format === FORMAT && KEY_NAME.test(keyId) ? { keyId, bytes: 2 + length } : undefined;
}

function nameOf({ table, column, row }: SealedPlace): string {
  return `${table}.${column} ${row}`;
}

/** Each name follows its length (two bytes), so that no two places have the same additional data. */
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
