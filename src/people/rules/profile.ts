import { Injectable } from '@nestjs/common';
import { Fingerprints } from '../../vault/fingerprints.js';
import { type SealedPlace, Vault } from '../../vault/vault.js';
import type { PersonKind } from './person.js';
import { PROFILE_FIELDS, type Profile } from './person-field-rules.js';

/** A person's unique identity in the EHR, until it is renamed. */
export interface PersonKey {
  kind: PersonKind;
  externalId: string;
}

/** The internal id, which never changes, so that encrypted values are bound to it. */
type SealedFor = { id: string };

type TextColumn = 'invite_url' | 'error_text';

/** Normalises an email for comparison: NFC, without outer spaces, in lower case. */
function normaliseEmail(email: string): string {
  return email.trim().normalize('NFC').toLowerCase();
}

/** Seals profiles, and computes the fingerprints for comparing them. */
@Injectable()
export class ProfileSeal {
  constructor(
    private readonly vault: Vault,
    private readonly fingerprints: Fingerprints,
  ) {}

  /**
   * Seals a profile. The three profile columns share one place, so that SQL can copy the desired profile into that of an
   * attempt.
   */
  seal(person: SealedFor, profile: Profile): Buffer {
    return this.sealAt(place(person, 'profile'), profile);
  }

  /** Opens a sealed profile. */
  open(person: SealedFor, sealed: Uint8Array): Profile {
    return this.openAt(place(person, 'profile'), sealed);
  }

  /** Seals a profile for another place than that of its person. */
  sealAt(at: SealedPlace, profile: Profile): Buffer {
    return this.vault.seal(at, textOf(profile));
  }

  openAt(at: SealedPlace, sealed: Uint8Array): Profile {
    return JSON.parse(this.vault.open(at, sealed)) as Profile;
  }

  /** Computes a keyed hash, equal for equal profiles. */
  hash(profile: Profile): Buffer {
    return this.fingerprints.of('profile', textOf(profile));
  }

  /** The fingerprint of an email address; null without one. */
  emailFingerprint(email: string | undefined): Buffer | null {
    return email === undefined ? null : this.fingerprints.of('email', normaliseEmail(email));
  }

  /** Seals a text from the platform about a person. */
  sealText(person: SealedFor, column: TextColumn, text: string): Buffer {
    return this.vault.seal(place(person, column), text);
  }

  openText(person: SealedFor, column: TextColumn, sealed: Uint8Array): string {
    return this.vault.open(place(person, column), sealed);
  }
}

/** Leaves out fields without a value, so that a new field changes no hash. */
function textOf(profile: Profile): string {
  return JSON.stringify(profile, PROFILE_FIELDS);
}

function place({ id }: SealedFor, column: TextColumn | 'profile'): SealedPlace {
  return { table: 'people', column, row: id };
}
