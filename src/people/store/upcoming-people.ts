import { Injectable } from '@nestjs/common';
import type { PoolClient } from 'pg';
import type { PersonKey, Profile } from '../model/profile.js';

/** A person that a running import will bring: its row has not started. */
export interface UpcomingPerson extends PersonKey {
  profile: Profile;
  /** External ids of a client's providers. */
  providers: string[];
  since: Date;
}

/** A source of people that imports will create. */
export interface UpcomingSource {
  find(key: PersonKey): Promise<UpcomingPerson | undefined>;
  /** @param email its fingerprints by all accepted keys */
  search(email: Buffer[] | null, externalId: string | undefined): Promise<UpcomingPerson[]>;
  /** Starts the rows that name these people, in the caller's transaction. */
  start(tx: PoolClient, kind: PersonKey['kind'], externalIds: readonly string[]): Promise<void>;
  /** Keeps imports that are being read, or have not started, from creating a person that the EHR deleted. */
  wasDeleted(key: PersonKey): Promise<void>;
}

/**
 * People of running imports whose rows have not started. The EHR sees them as pending, and a write to one of them
 * starts its row first. Imports register themselves, because this folder must not import theirs.
 */
@Injectable()
export class UpcomingPeople implements UpcomingSource {
  private source: UpcomingSource = {
    find: async () => undefined,
    search: async () => [],
    start: async () => undefined,
    wasDeleted: async () => undefined,
  };

  register(source: UpcomingSource): void {
    this.source = source;
  }

  find(key: PersonKey): Promise<UpcomingPerson | undefined> {
    return this.source.find(key);
  }

  search(email: Buffer[] | null, externalId: string | undefined): Promise<UpcomingPerson[]> {
    return this.source.search(email, externalId);
  }

  start(tx: PoolClient, kind: PersonKey['kind'], externalIds: readonly string[]): Promise<void> {
    return this.source.start(tx, kind, externalIds);
  }

  wasDeleted(key: PersonKey): Promise<void> {
    return this.source.wasDeleted(key);
  }
}
