import { Injectable } from '@nestjs/common';
import { type SealedPlace, Vault } from '../../vault/vault.js';
import type { PersonKind } from './person.js';

/** The EHR's data of a person: personal data, always sealed when stored. */
export interface Profile {
  email: string | null;
  firstName: string;
  lastName: string;
}

/** A person's unique identity in the EHR, which also binds its sealed values. */
export interface PersonKey {
  kind: PersonKind;
  externalId: string;
  /** The internal id, if known, which logs may contain. */
  id?: string;
}

type TextColumn = 'invite_url' | 'error_text';

/** Normalises an email for comparison: NFC, without outer spaces, in lower case. */
function normaliseEmail(email: string): string {
  return email.trim().normalize('NFC').toLowerCase();
}

/** Seals profiles, and computes the fingerprints for comparing them. */
@Injectable()
export class ProfileSeal {
  constructor(private readonly vault: Vault) {}

  /**
   * Seals a profile. The three profile columns share one place, so that SQL can copy the desired profile into that of an
   * attempt.
   */
  seal(key: PersonKey, profile: Profile): Buffer {
    return this.vault.seal(place(key, 'profile'), JSON.stringify([profile.email, profile.firstName, profile.lastName]));
  }

  /** Opens a sealed profile. */
  open(key: PersonKey, sealed: Uint8Array): Profile {
    const [email, firstName, lastName] = JSON.parse(this.vault.open(place(key, 'profile'), sealed));
    return { email, firstName, lastName };
  }

  /** Computes a keyed hash, equal for equal profiles. */
  hash(profile: Profile): Buffer {
    return this.vault.fingerprint('profile', JSON.stringify([profile.email, profile.firstName, profile.lastName]));
  }

  /** The fingerprint of an email address; null without one. */
  emailFingerprint(email: string | null): Buffer | null {
    return email === null ? null : this.vault.fingerprint('email', normaliseEmail(email));
  }

  /** Seals a text from the platform about a person. */
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
