import { Injectable } from '@nestjs/common';
import { Database } from '../../database/database.js';
import { type PersonKey, type Profile, ProfileSeal } from '../model/profile.js';
import { PeopleRepository } from '../store/people.repository.js';
import type { PersonRow } from '../store/person-row.js';
import { usersOf } from '../store/person-users.js';
import { PeopleService } from './people.service.js';
import type { PersonResponse } from './person-view.js';
import type { TraceResponse } from './trace.dto.js';
import { traceOf } from './trace.js';

/** A person with the data that the platform received. */
export interface PersonRecord extends PersonResponse {
  createdAt: Date;
  wantedAt: Date;
  givenToPlatform: Profile | null;
  /** The profile of a create whose outcome is unknown. */
  sentWithoutAnswer: Profile | null;
  formerPlatformUserIds: string[];
  trace: Omit<TraceResponse, 'history' | 'choices'>;
}

/** Everything stored about people themselves, for the export of a client's records. */
@Injectable()
export class PersonRecords {
  constructor(
    private readonly database: Database,
    private readonly people: PeopleRepository,
    private readonly service: PeopleService,
    private readonly seal: ProfileSeal,
  ) {}

  /** @throws {Problem} 404; 503 `data-unreadable` */
  async find(key: PersonKey): Promise<PersonRecord> {
    return this.recordOf(await this.service.read(key));
  }

  /** The records of those of some people that were merged into another client. */
  async findMerged(ids: string[]): Promise<PersonRecord[]> {
    const merged = await this.people.mergedOf(ids);
    return Promise.all(merged.map((row) => this.recordOf(row)));
  }

  private async recordOf(row: PersonRow): Promise<PersonRecord> {
    const users = await usersOf(this.database.pool, row);
    const openProfile = (sealed: Buffer | null) => sealed && this.seal.open(row, sealed);
    const { history: _, choices: __, ...trace } = traceOf(row, []);
    return {
      ...this.service.view(row),
      // The view hides what a legal hold or a merge keeps.
      ...openProfile(row.profile),
      createdAt: row.createdAt,
      wantedAt: row.wantedAt,
      givenToPlatform: openProfile(row.appliedProfile),
      sentWithoutAnswer: openProfile(row.attemptProfile),
      formerPlatformUserIds: users.filter((user) => user !== row.platformUserId),
      trace,
    };
  }
}
