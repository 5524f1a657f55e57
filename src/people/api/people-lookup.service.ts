import { Injectable } from '@nestjs/common';
import { Audit } from '../../audit/audit.js';
import { PrismaService, toBytes } from '../../database/prisma.service.js';
import { Problem } from '../../http/problem/problem.js';
import { CallLog } from '../../platform/pauses/call-log.repository.js';
import { PausesRepository } from '../../platform/pauses/pauses.repository.js';
import { openIfReadable } from '../../vault/unreadable-value.js';
import { PERSON_KINDS } from '../rules/person.js';
import { isEmailAddress } from '../rules/person-field-rules.js';
import { type PersonKey, ProfileSeal } from '../rules/profile.js';
import { FormerIdsRepository } from '../store/former-ids.repository.js';
import { PeopleRepository } from '../store/people.repository.js';
import type { PersonRow } from '../store/person-row.js';
import { PlatformUsersRepository } from '../store/platform-users.repository.js';
import type { NamesRequest } from './people.dto.js';
import { PeopleService } from './people.service.js';
import type { PersonNameResponse, PersonResponse, PlatformUserResponse } from './person-view.js';
import type { TraceResponse } from './trace.dto.js';
import { traceOf } from './trace.js';

/** The calls of a trace. */
const TRACED_CALLS = 100;

/** Maximum people that a search returns. */
const SEARCH_MAX = 200;

/** A person, and which of its ids a text is. */
interface NamedPerson {
  matched: 'id' | 'former-id' | 'platform-id' | 'email';
  person: PersonResponse;
}

/** Finds and explains people. Changes nothing. */
@Injectable()
export class PeopleLookup {
  constructor(
    private readonly prisma: PrismaService,
    private readonly people: PeopleRepository,
    private readonly views: PeopleService,
    private readonly users: PlatformUsersRepository,
    private readonly formerIds: FormerIdsRepository,
    private readonly pauses: PausesRepository,
    private readonly calls: CallLog,
    private readonly seal: ProfileSeal,
    private readonly audit: Audit,
  ) {}

  /**
   * Shows the known facts about a platform user, so that an operator can check its owner before linking it.
   *
   * @throws {Problem} 404 `unknown-platform-user` if neither an event nor a call has named it
   */
  async platformUser(platformUserId: string): Promise<PlatformUserResponse> {
    const user = await this.users.describe(platformUserId);
    if (!user.person && user.seenAt === null) {
      const detail = 'This service does not know this platform user. Check on the platform who it is.';
      throw new Problem('unknown-platform-user', detail);
    }
    this.audit.about('platform-user', user.platformUserId);
    for (const person of [user.person, user.formerPerson]) if (person) this.audit.about(person.kind, person.externalId);
    return user;
  }

  /**
   * Finds people of both kinds by external id or email, also the one whose account has the email although the EHR has changed it
   * since. @throws {Problem} 409 `renamed` or `merged` if none has the id now */
  async search({ email, externalId }: { email?: string; externalId?: string }): Promise<PersonResponse[]> {
    const found = await this.matching({ email, externalId });
    if (found.length > 0 || externalId === undefined) return found;
    for (const kind of PERSON_KINDS) await this.formerIds.refuse(kind, [externalId]);
    return [];
  }

  /** Finds people by a whole id of any kind, also a former one, or by email. */
  async named(text: string): Promise<NamedPerson[]> {
    const found: NamedPerson[] = [];
    const add = (matched: NamedPerson['matched'], people: PersonResponse[]) =>
      found.push(...people.map((person) => ({ matched, person })));
    add('id', await this.matching({ externalId: text }));
    if (isEmailAddress(text)) add('email', await this.matching({ email: text }));
    for (const kind of PERSON_KINDS) {
      const successor = (await this.formerIds.find(kind, [text])).get(text);
      if (successor) add('former-id', await this.current({ kind, externalId: successor.current }));
    }
    const { person } = await this.users.describe(text);
    if (person) add('platform-id', await this.current(person));
    return found;
  }

  private async current({ kind, externalId }: PersonKey): Promise<PersonResponse[]> {
    return (await this.matching({ externalId })).filter((person) => person.kind === kind);
  }

  private async matching({ email, externalId }: { email?: string; externalId?: string }): Promise<PersonResponse[]> {
    const fingerprint = this.seal.emailFingerprint(email);
    const people: PersonRow[] = await this.people.search(fingerprint, externalId, SEARCH_MAX);
    const holder = fingerprint && externalId === undefined ? await this.holderOf(fingerprint) : undefined;
    if (holder && people.every(({ id }) => id !== holder.id)) people.push(holder);
    return people.map((row) => this.views.view(row));
  }

  /** The person that blocks an email for all others (`email-taken`). */
  private async holderOf(email: Buffer): Promise<PersonRow | undefined> {
    const claim = await this.prisma.emailClaim.findUnique({ where: { fingerprint: toBytes(email) } });
    return claim ? this.people.find({ id: claim.personId }) : undefined;
  }

  /** The names of people who are known and not deleted. */
  async names({ providers = [], clients = [] }: NamesRequest): Promise<PersonNameResponse[]> {
    const people = await this.people.profiles(providers, clients);
    return people.map(({ id, kind, externalId, profile }) => {
      this.audit.about(kind, externalId);
      const { firstName = null, lastName = null } = openIfReadable(() => this.seal.open({ id }, profile)) ?? {};
      return { kind, externalId, firstName, lastName };
    });
  }

  /** Explains the state of a person; sends nothing. @throws {Problem} 404 */
  async trace(key: PersonKey): Promise<TraceResponse> {
    const row = await this.views.read(key);
    return traceOf(row, await this.calls.of(row.id, TRACED_CALLS), await this.pauses.read());
  }
}
