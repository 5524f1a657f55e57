import { Injectable } from '@nestjs/common';
import { PrismaService, type Tx } from '../../database/prisma.service.js';
import type { Prisma } from '../../generated/prisma/client.js';
import type { ListedProvider, PersonKind, PersonState } from '../rules/person.js';
import {
  type PersonRow,
  SHOWN_FIELDS,
  type ShownPerson,
  type StoredPerson,
  type Surroundings,
  toPersonRow,
} from './person-row.js';
import { ROLES } from './platform-users.repository.js';

/** The role of each kind of people, as SQL. */
const ROLE = `CASE p.kind WHEN 'client' THEN '${ROLES.client}' ELSE '${ROLES.provider}' END`;

/** SQL condition: person `p` must be deleted, and has a user. */
const IS_LEAVING = 'NOT p.wanted AND p.platform_user_id IS NOT NULL';

/** SQL: whether the role of platform user `u` fits person `p`; null if it is not known. */
const ROLE_FIT = `CASE WHEN u.role = ${ROLE} THEN 'fits' WHEN u.role IS NOT NULL THEN 'differs' END`;

/** The codes that the cause of the newest call's failure explains. */
const EXPLAINED = ['platform-fault', 'platform-unreachable', 'outcome-unknown', 'create-unknown', 'delete-unknown'];

/** What the next steps of people depend on besides their own rows. */
const SURROUNDINGS = `
  SELECT p.id, clock_timestamp() AS now,
    coalesce((SELECT CASE WHEN c.person_id = p.id THEN 'held' ELSE 'taken' END
      FROM email_claims c WHERE c.fingerprint = p.email_fingerprint), 'free') AS claim,
    ARRAY(SELECT encode(c.fingerprint, 'hex') FROM email_claims c WHERE c.person_id = p.id) AS "emailClaims",
    p.kind = 'provider' AND ${IS_LEAVING} AND EXISTS (
      SELECT 1 FROM people c
      WHERE c.applied_providers @> ARRAY[p.platform_user_id] AND c.platform_user_id IS NOT NULL
        AND c.state IN ('pending', 'waiting')) AS "stillListed",
    CASE WHEN ${IS_LEAVING} THEN (
      SELECT ${ROLE_FIT} FROM platform_users u WHERE u.platform_user_id = p.platform_user_id) END AS role,
    coalesce((
      SELECT json_agg(json_build_object('id', u.platform_user_id, 'origin', u.origin, 'role', ${ROLE_FIT})
        ORDER BY u.seen_at, u.platform_user_id)
      FROM platform_users u WHERE u.person_id = p.id AND NOT u.deleted), '[]') AS others,
    CASE WHEN p.error_code IN ('${EXPLAINED.join("', '")}') THEN (
      SELECT c.operation || ', ' || c.reason FROM platform_calls c WHERE c.person_id = p.id ORDER BY c.id DESC LIMIT 1)
      END AS "answerFault"
  FROM people p WHERE p.id = ANY ($1::uuid[])`;

/** The providers of clients. @param lock locks them, so that a mapping comes before or after the decision */
const providersOf = (lock: string): string => `
  SELECT cp.client_id AS "clientId", cp.position, q.external_id AS "externalId",
    CASE WHEN q.wanted AND q.unsettled_call IS NULL THEN q.platform_user_id END AS "platformUserId"
  FROM client_providers cp JOIN people q ON q.id = cp.provider_id
  WHERE cp.client_id = ANY ($1::uuid[]) ORDER BY q.id ${lock}`;

/** The people of a list. */
export interface PeopleFilter {
  state?: PersonState;
  /** External id of a provider; only its clients. */
  provider?: string;
}

/** A person with the profile that the EHR wants. */
export type NamedProfile = Pick<StoredPerson, 'id' | 'kind' | 'externalId'> & { profile: Uint8Array };

/** Names one person. */
export type PersonFilter = { id?: string; kind?: PersonKind; externalId?: string; platformUserId?: string };

const SHOWN = {
  ...(Object.fromEntries(SHOWN_FIELDS.map((field) => [field, true])) as Record<(typeof SHOWN_FIELDS)[number], true>),
  providers: { orderBy: { position: 'asc' }, select: { provider: { select: { externalId: true } } } },
} as const satisfies Prisma.PersonSelect;

/** Reads people with everything that their next steps depend on, or as the API shows them. */
@Injectable()
export class PeopleReader {
  constructor(protected readonly prisma: PrismaService) {}

  async find(where: PersonFilter, tx?: Tx): Promise<PersonRow | undefined> {
    const db = tx ?? this.prisma;
    const named = await db.person.findFirst({ where: conditionOf(where), select: { id: true } });
    return named ? (await this.readAll(db, [named.id]))[0] : undefined;
  }

  /**
   * Reads people, in the order of `ids`.
   *
   * @param isLocked true if they are locked; the providers of clients then are, too
   */
  async readAll(db: Tx, ids: readonly string[], isLocked = false): Promise<PersonRow[]> {
    if (ids.length === 0) return [];
    const clients = await this.providersOf(db, ids, isLocked);
    const stored = (await db.person.findMany({ where: { id: { in: [...ids] } } })) as StoredPerson[];
    const around = await db.$queryRawUnsafe<(Surroundings & { id: string })[]>(SURROUNDINGS, ids);
    const aroundOf = new Map(around.map(({ id, ...rest }) => [id, rest]));
    const rows = new Map(
      stored.flatMap((row) => {
        const known = aroundOf.get(row.id);
        return known ? [[row.id, toPersonRow(row, clients.get(row.id) ?? [], known)] as const] : [];
      }),
    );
    return ids.flatMap((id) => rows.get(id) ?? []);
  }

  /** @param isLocked locks the providers in the order of their ids, as everyone does who locks several people */
  private async providersOf(db: Tx, ids: readonly string[], isLocked: boolean): Promise<Map<string, ListedProvider[]>> {
    type Listed = ListedProvider & { clientId: string; position: number };
    const rows = await db.$queryRawUnsafe<Listed[]>(providersOf(isLocked ? 'FOR SHARE OF q' : ''), ids);
    const clients = new Map<string, ListedProvider[]>();
    for (const { clientId, position, ...provider } of rows) {
      const list = clients.get(clientId) ?? [];
      list[position] = provider;
      clients.set(clientId, list);
    }
    for (const [clientId, list] of clients) clients.set(clientId, list.filter(Boolean));
    return clients;
  }

  /** One page of people of one kind, ordered by external id; without a state, those that are not deleted. */
  async page(
    kind: PersonKind,
    { state, provider }: PeopleFilter,
    limit: number,
    after: string,
  ): Promise<ShownPerson[]> {
    const where: Prisma.PersonWhereInput = {
      ...{ kind, externalId: { gt: after }, state: state ?? { not: 'deleted' }, ...WAS_WANTED },
      ...(provider !== undefined && {
        providers: { some: { provider: { kind: 'provider', externalId: provider } } },
      }),
    };
    return this.readShown({ where, orderBy: { externalId: 'asc' }, take: limit });
  }

  /** Finds people of both kinds that are not deleted. */
  async search(email: Uint8Array | null, externalId: string | undefined, limit: number): Promise<ShownPerson[]> {
    const where: Prisma.PersonWhereInput = {
      ...{ kind: { in: ['provider', 'client'] }, state: { not: 'deleted' } },
      ...(email && { emailFingerprint: new Uint8Array(email) }),
      ...(externalId !== undefined && { externalId }),
    };
    return this.readShown({ where, orderBy: [{ kind: 'asc' }, { externalId: 'asc' }], take: limit });
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
    const holder = await this.find({ platformUserId }, tx);
    if (holder) return holder;
    const user = await tx.platformUser.findUnique({ where: { platformUserId } });
    return user?.personId ? this.find({ id: user.personId }, tx) : undefined;
  }

  private async readShown(
    query: Pick<Prisma.PersonFindManyArgs, 'where' | 'orderBy' | 'take'>,
  ): Promise<ShownPerson[]> {
    const rows = await this.prisma.person.findMany({ ...query, select: SHOWN } as { select: typeof SHOWN });
    const unexplained = rows.filter(({ errorCode }) => EXPLAINED.includes(errorCode ?? '')).map(({ id }) => id);
    const faults = await this.answerFaults(unexplained);
    return rows.map(({ providers, ...row }) => ({
      ...(row as unknown as ShownPerson),
      providers: providers.map(({ provider }) => provider.externalId),
      answerFault: faults.get(row.id) ?? null,
    }));
  }

  private async answerFaults(ids: readonly string[]): Promise<Map<string, string | null>> {
    if (ids.length === 0) return new Map();
    const around = await this.prisma.$queryRawUnsafe<{ id: string; answerFault: string | null }[]>(SURROUNDINGS, ids);
    return new Map(around.map(({ id, answerFault }) => [id, answerFault]));
  }
}

/** The EHR has named the person, and not only deleted its id. */
const WAS_WANTED = { wantedVersion: { gt: 0 } } as const;

/** The condition of a filter. Prisma takes `undefined` for a mistake. */
export function conditionOf({ id, kind, externalId, platformUserId }: PersonFilter): Prisma.PersonWhereInput {
  const entries = Object.entries({ id, kind, externalId, platformUserId }).filter(([, value]) => value !== undefined);
  return { ...(Object.fromEntries(entries) as Prisma.PersonWhereInput), ...WAS_WANTED };
}
