import { Injectable } from '@nestjs/common';
import { Vault } from '../../vault/vault.js';

/** Reference keys may hold identifiers of people (a record number, say): only their fingerprints are stored. */
@Injectable()
export class ReferenceKeys {
  constructor(private readonly vault: Vault) {}

  /** Equal keys have equal fingerprints. */
  of(key: string): string {
    return this.vault.fingerprint('reference', key).toString('base64');
  }
}
