import { Injectable } from '@nestjs/common';
import { type SealedPlace, Vault } from '../../vault/vault.js';
import type { PersonKind } from './person.js';

/** What the EHR says of a person: personal data, sealed wherever it is stored. */
export interface Profile {
  email: string | null;
  firstName: string;
  lastName: string;
}

/** A person's identity in the EHR: unique, and the place of encrypted values. */
export interface PersonKey {
  kind: PersonKind;
  externalId: string;
  /** Ours, where it is known: what a log may name. */
  id?: string;
}

type TextColumn = 'invite_url' | 'error_text';

/** The one spelling of an email by which two are the same: composed (NFC), without outer blanks, in lower case. */
function normaliseEmail(email: string): string {
  return email.trim().normalize('NFC').toLowerCase();
}

/** Seals profiles for their columns and makes the fingerprints by which they are compared. */
@Injectable()
export class ProfileSeal {
  constructor(private readonly vault: Vault) {}

  /**
   * Seals a profile. The three profile columns share one place, so that "what was sent" can be copied from "what is
   * wanted" in SQL.
   */
  seal(key: PersonKey, profile: Profile): Buffer {
    return this.vault.seal(place(key, 'profile'), JSON.stringify([profile.email, profile.firstName, profile.lastName]));
  }

  /** Opens a sealed profile. */
  open(key: PersonKey, sealed: Uint8Array): Profile {
    const [email, firstName, lastName] = JSON.parse(this.vault.open(place(key, 'profile'), sealed));
    return { email, firstName, lastName };
  }

  /** Equal profiles have equal hashes. */
  hash(profile: Profile): Buffer {
    return this.vault.fingerprint('profile', JSON.stringify([profile.email, profile.firstName, profile.lastName]));
  }

  /** The fingerprint of an email address, or null when there is none. */
  emailFingerprint(email: string | null): Buffer | null {
    return email === null ? null : this.vault.fingerprint('email', normaliseEmail(email));
  }

  /** Seals what the platform gave or said of a person. */
  sealText(key: PersonKey, column: TextColumn, text: string): Buffer {
    return this.vault.seal(place(key, column), text);
  }

  openText(key: PersonKey, column: TextColumn, sealed: Uint8Array): string {
    return this.vault.open(place(key, column), sealed);
  }
}

function place(key: PersonKey, column: TextColumn | 'profile'): SealedPlace {
  return { table: 'people', column, row: `${key.kind}/${key.externalId}`, logRow: key.id ?? `a ${key.kind}` };
}
