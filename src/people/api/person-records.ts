import { Injectable, type OnModuleInit } from '@nestjs/common';
import type { Profile } from '../rules/person-field-rules.js';
import { ProfileSeal } from '../rules/profile.js';
import { ClientData, ERASED } from '../store/client-data.js';
import { FormerIdsRepository } from '../store/former-ids.repository.js';
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
  otherPlatformUserIds: string[];
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
    private readonly service: PeopleService,
    private readonly seal: ProfileSeal,
    private readonly data: ClientData,
  ) {}

  onModuleInit(): void {
    this.data.register({
      ...{ section: 'client', isList: false, model: PersonResponse },
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
    });
  }

  /** @throws {Problem} 503 `data-unreadable` */
  private async recordOf(row: PersonRow): Promise<PersonRecord> {
    const users = await this.formerIds.users(row);
    const openProfile = (sealed: Uint8Array | null) => sealed && this.seal.open(row, sealed);
    const { history: _, choices: __, ...trace } = traceOf(row, [], new Map());
    return {
      ...this.service.view(row),
      // The view hides what a legal hold keeps.
      ...openProfile(row.profile),
      createdAt: row.createdAt,
      wantedAt: row.wantedAt,
      givenToPlatform: openProfile(row.appliedProfile),
      sentWithoutAnswer: openProfile(row.unsettledProfile),
      otherPlatformUserIds: users.filter((user) => user !== row.platformUserId),
      trace,
    };
  }
}
