import { KeyedHashes } from './keyed-hashes.js';

/** The fields that a MAC covers, in a fixed order. */
export type MacFields = readonly (string | number | boolean | null | MacFields)[];

/**
 * Message authentication codes by AUDIT_KEYS: a row that carries one was written by a process of this service, and not by
 * an attacker who can only write to the database.
 */
export class Macs {
  constructor(private readonly hashes: KeyedHashes) {}

  /** The MAC of fields by the first key. @param purpose separates kinds of rows, for example `api-key` */
  sign(purpose: string, fields: MacFields): Buffer {
    return this.hashes.of(purpose, JSON.stringify(fields));
  }

  /** True if an accepted key made this MAC of these fields. */
  verify(purpose: string, fields: MacFields, mac: Uint8Array | null): boolean {
    return mac !== null && this.hashes.matches(purpose, JSON.stringify(fields), mac);
  }

  /** True if the first key made a MAC: a rotation has nothing to do. */
  isCurrent(mac: Uint8Array): boolean {
    return this.hashes.isCurrent(mac);
  }
}
