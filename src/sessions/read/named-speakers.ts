import { Injectable } from '@nestjs/common';
import { Audit } from '../../audit/audit.js';
import { PrismaService } from '../../database/prisma.service.js';
import type { PersonKey } from '../../people/rules/profile.js';
import { peopleOf } from '../../people/store/person-users.js';
import type { Transcript } from '../../platform/contract/session-answer.js';
import { isPlatformId } from '../../platform/contract/wire-types.js';
import { SessionReader } from './session-reader.js';

/** A platform user with the EHR's current id of its person. */
type NamedUser = PersonKey & { platformUserId: string };

/** Transcripts and insights of one session, with the EHR's ids of the people that the platform names by its own. */
@Injectable()
export class NamedSpeakers {
  constructor(
    private readonly reader: SessionReader,
    private readonly prisma: PrismaService,
    private readonly audit: Audit,
  ) {}

  /** @throws {Problem} as `SessionReader.transcript` */
  async transcript(id: string): Promise<object> {
    const transcript = (await this.reader.transcript(id)) as Transcript;
    return { ...transcript, speakers: await this.named(Object.entries(transcript.speakerMapping ?? {})) };
  }

  /** @throws {Problem} as `SessionReader.insights` */
  async insights(id: string): Promise<object> {
    const insights = await this.reader.insights(id);
    const measures = Object.values(insights.analyticsSummary ?? {}).filter((measure) => typeof measure === 'object');
    const users = new Set(measures.flatMap((measure) => Object.keys(measure ?? {})));
    return { ...insights, people: await this.named([...users].map((user) => [user, user])) };
  }

  /** The people behind these users, by key. Unknown users are absent. Adds the people to the audit entry. */
  private async named(users: [key: string, user: string][]): Promise<Record<string, NamedUser>> {
    const keys = users.map(([, user]) => user).filter(isPlatformId);
    const people = await peopleOf(this.prisma, [...new Set(keys)]);
    for (const { kind, externalId } of people.values()) this.audit.about(kind, externalId);
    return Object.fromEntries(
      users.flatMap(([key, platformUserId]) => {
        const person = people.get(platformUserId);
        return person ? [[key, { ...person, platformUserId }]] : [];
      }),
    );
  }
}
