import { Injectable } from '@nestjs/common';
import { PrismaService, type Tx } from '../../database/prisma.service.js';
import type { Prisma } from '../../generated/prisma/client.js';
import type { PersonKind, PersonState } from '../rules/person.js';
import { type PersonRow, type StoredPerson, type Surroundings, toPersonRow } from './person-row.js';

/** The codes that the cause of the newest call's failure explains. */
const EXPLAINED = ['platform-fault', 'platform-unreachable', 'outcome-unknown', 'create-unknown', 'delete-unknown'];

/** What the next steps of people depend on besides their own rows. */
const SURROUNDINGS = `
  SELECT p.id, clock_timestamp() AS now,
    coalesce((SELECT CASE WHEN c.person_id = p.id THEN 'held' ELSE 'taken' END
      FROM email_claims c WHERE c.fingerprint = p.email_fingerprint), 'free') AS claim,
    ARRAY(SELECT encode(c.fingerprint, 'hex') FROM email_claims c WHERE c.person_id = p.id) AS "emailClaims",
    p.kind = 'provider' AND NOT p.wanted AND p.platform_user_id IS NOT NULL AND EXISTS (
      SELECT 1 FROM people c
      WHERE c.applied_providers @> ARRAY[p.platform_user_id] AND c.platform_user_id IS NOT NULL
        AND c.state IN ('pending', 'waiting')) AS "stillListed",
    (SELECT u.role FROM platform_users u WHERE u.platform_user_id = p.platform_user_id) AS role,
    coalesce((
      SELECT json_agg(json_build_object('id', u.platform_user_id, 'origin', u.origin, 'role', u.role)
        ORDER BY u.seen_at, u.platform_user_id)
      FROM platform_users u WHERE u.person_id = p.id AND NOT u.deleted), '[]') AS others,
    coalesce((
      SELECT json_agg(json_build_object('externalId', q.external_id, 'platformUserId',
        CASE WHEN q.wanted AND q.unsettled_call IS NULL THEN q.platform_user_id END) ORDER BY cp.position)
      FROM client_providers cp JOIN people q ON q.id = cp.provider_id WHERE cp.client_id = p.id), '[]') AS providers,
    CASE WHEN p.error_code IN ('${EXPLAINED.join("', '")}') THEN (
      SELECT c.operation || ', ' || c.reason FROM platform_calls c WHERE c.person_id = p.id ORDER BY c.id DESC LIMIT 1)
      END AS "answerFault"
  FROM people p WHERE p.id = ANY ($1::uuid[]) ORDER BY array_position($1::uuid[], p.id)`;

/** The people of a list. */
export interface PeopleFilter {
  state?: PersonState;
  /** External id of a provider; only its clients. */
  provider?: string;
}

/** A person with the profile that the EHR wants. */
export type NamedProfile = Pick<StoredPerson, 'id' | 'kind' | 'externalId'> & { profile: Uint8Array };

/** Reads people with everything that their next steps depend on. */
@Injectable()
export class PeopleReader {
  constructor(protected readonly prisma: PrismaService) {}

  async find(where: Prisma.PersonWhereInput, tx?: Tx): Promise<PersonRow | undefined> {
    return (await this.readFound(tx ?? this.prisma, { where: { ...where, ...WAS_WANTED }, take: 1 }))[0];
  }

  /** Reads people, in the order of `ids`. */
  async readAll(db: Tx, ids: readonly string[]): Promise<PersonRow[]> {
    if (ids.length === 0) return [];
    const stored = (await db.person.findMany({ where: { id: { in: [...ids] } } })) as StoredPerson[];
    const rows = new Map(stored.map((row) => [row.id, row]));
    const around = await db.$queryRawUnsafe<(Surroundings & { id: string })[]>(SURROUNDINGS, ids);
    return around.flatMap(({ id, ...known }) => {
      const row = rows.get(id);
      return row ? [toPersonRow(row, known)] : [];
    });
  }

  /** One page of people of one kind, ordered by external id; without a state, those that are not deleted. */
  async page(kind: PersonKind, { state, provider }: PeopleFilter, limit: number, after: string): Promise<PersonRow[]> {
    const where: Prisma.PersonWhereInput = {
      ...{ kind, externalId: { gt: after }, state: state ?? { not: 'deleted' }, ...WAS_WANTED },
      ...(provider !== undefined && {
        providers: { some: { provider: { kind: 'provider', externalId: provider } } },
      }),
    };
    return this.readFound(this.prisma, { where, orderBy: { externalId: 'asc' }, take: limit });
  }

  /** Finds people of both kinds that are not deleted. @param email also of the person that claims it, although it has another now */
  async search(email: Uint8Array | null, externalId: string | undefined, limit: number): Promise<PersonRow[]> {
    const fingerprint = email && new Uint8Array(email);
    const claim = fingerprint && (await this.prisma.emailClaim.findUnique({ where: { fingerprint } }));
    const where: Prisma.PersonWhereInput = {
      ...{ kind: { in: ['provider', 'client'] }, state: { not: 'deleted' } },
      ...(fingerprint && { OR: [{ emailFingerprint: fingerprint }, ...(claim ? [{ id: claim.personId }] : [])] }),
      ...(externalId !== undefined && { externalId }),
    };
    return this.readFound(this.prisma, { where, orderBy: [{ kind: 'asc' }, { externalId: 'asc' }], take: limit });
  }

  /** The profiles of people who are not deleted, by external id. */
  async profiles(providers: readonly string[], clients: readonly string[]): Promise<NamedProfile[]> {
    const named = [
      { kind: 'provider' as const, externalId: { in: [...providers] } },
      { kind: 'client' as const, externalId: { in: [...clients] } },
    ];
    const where = { OR: named, wanted: true, profile: { not: null } };
    const select = { id: true, kind: true, externalId: true, profile: true } as const;
    return (await this.prisma.person.findMany({ where, select })) as NamedProfile[];
  }

  /** The profile of a provider whose email the platform can look up; undefined if none has one. */
  async anyProvider(): Promise<{ id: string; profile: Uint8Array } | undefined> {
    const where = { kind: 'provider', state: 'synced', profile: { not: null } } as const;
    const select = { id: true, profile: true } as const;
    const found = await this.prisma.person.findFirst({ where, orderBy: { externalId: 'asc' }, select });
    return found?.profile ? { id: found.id, profile: found.profile } : undefined;
  }

  /** The person that a platform user belongs or belonged to. */
  async ownerOf(tx: Tx, platformUserId: string): Promise<PersonRow | undefined> {
    return (await this.find({ platformUserId }, tx)) ?? this.find({ otherUsers: { some: { platformUserId } } }, tx);
  }

  private async readFound(
    db: Tx,
    query: Pick<Prisma.PersonFindManyArgs, 'where' | 'orderBy' | 'take'>,
  ): Promise<PersonRow[]> {
    const found = await db.person.findMany({ ...query, select: { id: true } } as { select: { id: true } });
    const ids = found.map(({ id }) => id);
    return this.readAll(db, ids);
  }
}

/** The EHR has named the person, and not only deleted its id. */
const WAS_WANTED = { wantedVersion: { gt: 0 } } as const;
