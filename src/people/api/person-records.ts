import { Injectable, type OnModuleInit } from '@nestjs/common';
import { type Profile, ProfileSeal } from '../rules/profile.js';
import { ClientData, ERASED } from '../store/client-data.js';
import { FormerIdsRepository } from '../store/former-ids.repository.js';
import { MergedClientsRepository } from '../store/merged-clients.repository.js';
import { PeopleRepository } from '../store/people.repository.js';
import type { PersonRow } from '../store/person-row.js';
import { PeopleService } from './people.service.js';
import { PersonResponse } from './person-view.js';
import type { TraceResponse } from './trace.dto.js';
import { traceOf } from './trace.js';

/** A person with the data that the platform received. */
interface PersonRecord extends PersonResponse {
  createdAt: Date;
  wantedAt: Date;
  givenToPlatform: Profile | null;
  /** The profile of a create whose outcome is unknown. */
  sentWithoutAnswer: Profile | null;
  formerPlatformUserIds: string[];
  trace: Omit<TraceResponse, 'history' | 'choices'>;
}

/** `PeopleRepository` erases them with the deletion itself. */
const PEOPLE_COLUMNS = {
  ...{ profile: ERASED, profile_hash: ERASED, email_fingerprint: ERASED, applied_profile: ERASED },
  ...{ invite_url: ERASED, error_text: ERASED },
  unsettled_profile: 'the email only, until the platform was asked about a create without an answer',
  unsettled_email: 'as `unsettled_profile`',
};

async function* items(list: object[]): AsyncGenerator<object> {
  yield* list;
}

/** Everything stored about people themselves, for the export of a client's records. */
@Injectable()
export class PersonRecords implements OnModuleInit {
  constructor(
    private readonly formerIds: FormerIdsRepository,
    private readonly people: PeopleRepository,
    private readonly service: PeopleService,
    private readonly seal: ProfileSeal,
    private readonly merged: MergedClientsRepository,
    private readonly data: ClientData,
  ) {}

  onModuleInit(): void {
    const { merged } = this;
    this.data.register(
      {
        ...{ section: 'client', model: PersonResponse },
        tables: {
          people: PEOPLE_COLUMNS,
          client_providers: {},
          email_claims: { fingerprint: 'until the platform deleted the user, so that no other person gets the email' },
          former_ids: {},
        },
        read: async ({ externalId, externalIds }) => {
          const client = await this.recordOf(await this.service.read({ kind: 'client', externalId }));
          return items([{ ...client, formerIds: externalIds.filter((id) => id !== externalId) }]);
        },
      },
      {
        ...{
          section: 'mergedClients',
          item: 'merged-client',
          tables: { people: PEOPLE_COLUMNS },
          model: PersonResponse,
        },
        read: async ({ people }) => items(await this.findMerged(people)),
        ...{ erase: (tx, person) => merged.erase(tx, person), erased: 'merged clients' },
      },
    );
  }

  /** The records of those of some people that were merged into another client. */
  private async findMerged(ids: string[]): Promise<PersonRecord[]> {
    const merged = await this.people.mergedOf(ids);
    return Promise.all(merged.map((row) => this.recordOf(row)));
  }

  /** @throws {Problem} 503 `data-unreadable` */
  private async recordOf(row: PersonRow): Promise<PersonRecord> {
    const users = await this.formerIds.users(row);
    const openProfile = (sealed: Uint8Array | null) => sealed && this.seal.open(row, sealed);
    const { history: _, choices: __, ...trace } = traceOf(row, [], new Map());
    return {
      ...this.service.view(row),
      // The view hides what a legal hold or a merge keeps.
      ...openProfile(row.profile),
      createdAt: row.createdAt,
      wantedAt: row.wantedAt,
      givenToPlatform: openProfile(row.appliedProfile),
      sentWithoutAnswer: openProfile(row.unsettledProfile),
      formerPlatformUserIds: users.filter((user) => user !== row.platformUserId),
      trace,
    };
  }
}
