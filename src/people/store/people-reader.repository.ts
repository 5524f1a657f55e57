import type { PoolClient } from 'pg';
import { allColumns, PERSON_COLUMNS } from '../../database/columns.js';
import { type Database, prepared } from '../../database/database.js';
import { IS_RESTORE_PENDING } from '../../sending/sending.js';
import type { PersonKind, PersonState } from '../model/person.js';
import { ALL_BREAKERS, type BreakersRepository } from './breakers.repository.js';
import { type PersonRow, SHOWN_FIELDS, type ShownPerson, type StoredPerson, toPersonRow } from './person-row.js';
import { ROLES } from './platform-users.repository.js';

/** SQL condition: a merged client is shown only while its account is being deleted. */
const IS_SHOWN_MERGED = "(state <> 'deleted' OR merged_into IS NULL)";

/** The role of each kind of people, as SQL. */
const ROLE = `CASE p.kind WHEN 'client' THEN '${ROLES.client}' ELSE '${ROLES.provider}' END`;

/** SQL condition: person `p` must be deleted, and has a user. */
const IS_LEAVING = 'NOT p.wanted AND p.platform_user_id IS NOT NULL';

/** SQL of the cause of the newest call's failure, for people who show it. */
const ANSWER_FAULT = `CASE WHEN p.error_code IN
      ('platform-fault', 'platform-unreachable', 'outcome-unknown', 'create-unknown', 'delete-unknown') THEN (
      SELECT c.operation || ', ' || c.reason FROM platform_calls c WHERE c.person_id = p.id AND c.outcome IS NOT NULL
      ORDER BY c.id DESC LIMIT 1) END AS "answerFault"`;

/** People with everything that their next steps depend on. @param breakers SQL of the circuit breakers */
const read = (breakers: string) => `
  SELECT ${allColumns('Person', 'p')}, clock_timestamp() AS now,
    coalesce((SELECT CASE WHEN c.person_id = p.id THEN 'held' ELSE 'taken' END
      FROM email_claims c WHERE c.fingerprint = p.email_fingerprint), 'free') AS claim,
    ARRAY(SELECT encode(c.fingerprint, 'hex') FROM email_claims c WHERE c.person_id = p.id) AS "emailClaims",
    CASE WHEN p.kind = 'client' THEN coalesce((
      SELECT json_agg(json_build_object(
          'externalId', q.external_id, 'platformUserId', CASE WHEN q.wanted AND q.attempt_call_id IS NULL THEN q.platform_user_id END) ORDER BY cp.position)
      FROM client_providers cp JOIN people q ON q.id = cp.provider_id WHERE cp.client_id = p.id), '[]') ELSE '[]' END AS providers,
    p.kind = 'provider' AND ${IS_LEAVING} AND EXISTS (
      SELECT 1 FROM people c
      WHERE c.applied_providers @> ARRAY[p.platform_user_id] AND c.platform_user_id IS NOT NULL
        AND c.state IN ('pending', 'waiting')) AS "stillListed",
    CASE WHEN ${IS_LEAVING} THEN (
      SELECT CASE WHEN u.role = ${ROLE} THEN 'fits' ELSE 'differs' END
      FROM platform_users u WHERE u.platform_user_id = p.platform_user_id) END AS role,
    ${IS_LEAVING} AND EXISTS (
      SELECT 1 FROM platform_users u WHERE u.external_user_id = p.external_id AND u.role = ${ROLE} AND u.person_id IS NULL
        AND NOT EXISTS (SELECT 1 FROM people q WHERE q.platform_user_id = u.platform_user_id)) AS "hasSecondUser",
    ${IS_RESTORE_PENDING} AS restored, ${breakers} AS breakers, ${ANSWER_FAULT}
  FROM people p`;

/** People as the API shows them. */
const READ_SHOWN = `
  SELECT ${SHOWN_FIELDS.map((field) => `p.${PERSON_COLUMNS[field]} AS "${field}"`).join(', ')},
    ARRAY(SELECT q.external_id FROM client_providers cp JOIN people q ON q.id = cp.provider_id
      WHERE cp.client_id = p.id ORDER BY cp.position) AS providers, ${ANSWER_FAULT}
  FROM people p`;

const READ = read('NULL');
const READ_TO_DECIDE = read(ALL_BREAKERS);

/** SQL condition: person `p` is a client of the provider $5. */
const IS_CLIENT_OF = `p.id IN (SELECT cp.client_id FROM client_providers cp JOIN people q ON q.id = cp.provider_id
  WHERE q.kind = 'provider' AND q.external_id = $5)`;

const PROFILES = `SELECT id, kind, external_id AS "externalId", profile FROM people
  WHERE (kind = 'provider' AND external_id = ANY ($1::text[]) OR kind = 'client' AND external_id = ANY ($2::text[]))
    AND wanted AND profile IS NOT NULL`;

/** The people of a list. */
export interface PeopleFilter {
  state?: PersonState;
  /** External id of a provider; only its clients. */
  provider?: string;
}

type NamedProfile = Pick<StoredPerson, 'id' | 'kind' | 'externalId'> & { profile: Buffer };

/** Names one person. */
export type PersonFilter = { id?: string; kind?: PersonKind; externalId?: string; platformUserId?: string };

export function conditionOf(where: PersonFilter): { condition: string; values: unknown[] } {
  const { id, kind, externalId, platformUserId } = where;
  const named = Object.entries({ id, kind, externalId, platformUserId } as const).filter(
    ([, value]) => value !== undefined,
  );
  const terms = named.map(([field, _], place) => `${PERSON_COLUMNS[field as keyof typeof where]} = $${place + 1}`);
  return { condition: terms.join(' AND '), values: named.map(([, value]) => value) };
}

/** Reads people with everything that their next steps depend on. */
export abstract class PeopleReader {
  protected constructor(
    protected readonly database: Database,
    private readonly breakers: BreakersRepository,
  ) {}

  async find(where: PersonFilter, tx?: PoolClient): Promise<PersonRow | undefined> {
    const { condition, values } = conditionOf(where);
    return (await this.read(condition, values, true, tx))[0];
  }

  /** One page of people of one kind, ordered by external id; without a state, those that are not deleted. */
  async page(kind: PersonKind, filter: PeopleFilter, limit: number, after: string): Promise<ShownPerson[]> {
    const { state, provider } = filter;
    const isShown = state === undefined ? "$3::text IS NULL AND state <> 'deleted'" : 'state = $3';
    const isTheirs = provider === undefined ? '$5::text IS NULL' : IS_CLIENT_OF;
    const condition = `kind = $1 AND external_id > $2 AND ${isShown} AND ${isTheirs} AND ${IS_SHOWN_MERGED}
      ORDER BY external_id LIMIT $4`;
    return this.readShown(condition, [kind, after, state ?? null, limit, provider ?? null]);
  }

  /** The profiles of people who are not deleted, by external id. */
  async profiles(providers: readonly string[], clients: readonly string[]): Promise<NamedProfile[]> {
    const { rows } = await this.database.pool.query<NamedProfile>(prepared(PROFILES, [providers, clients]));
    return rows;
  }

  /** Finds people of both kinds that are not deleted. Names the kinds, so that the index on external ids is used. */
  async search(email: Buffer[] | null, externalId: string | undefined, limit: number): Promise<ShownPerson[]> {
    const byEmail = email ? 'email_fingerprint = ANY ($1::bytea[])' : '$1::bytea[] IS NULL';
    const byId = externalId === undefined ? '$2::text IS NULL' : 'external_id = $2';
    const condition = `kind IN ('provider', 'client') AND state <> 'deleted' AND ${byEmail} AND ${byId}
      ORDER BY kind, external_id LIMIT $3`;
    return this.readShown(condition, [email, externalId ?? null, limit]);
  }

  /**
   * People that need a review or have failed, with everything that their next steps depend on.
   *
   * @param externalIds only these; null for all
   * @param limit maximum number of people, in the order of kind and external id
   */
  async unsettled(
    kinds: readonly PersonKind[],
    code: string,
    externalIds: readonly string[] | null,
    limit: number,
    tx?: PoolClient,
  ): Promise<PersonRow[]> {
    const condition = `p.kind = ANY ($1::person_kind[]) AND p.state IN ('needs-review', 'failed') AND p.error_code = $2
      AND ($3::text[] IS NULL OR p.external_id = ANY ($3)) ORDER BY p.kind, p.external_id LIMIT $4`;
    return this.read(condition, [kinds, code, externalIds, limit], true, tx);
  }

  /** Those of some people that were merged into another client. */
  async mergedOf(ids: string[]): Promise<PersonRow[]> {
    return this.read('id = ANY($1::uuid[]) AND merged_into IS NOT NULL', [ids], false);
  }

  /** The profile of a provider whose email the platform can look up; undefined if none has one. */
  async anyProvider(): Promise<{ id: string; profile: Buffer } | undefined> {
    const { rows } = await this.database.pool.query<{ id: string; profile: Buffer }>(
      `SELECT id, profile FROM people
       WHERE kind = 'provider' AND state = 'synced' AND profile IS NOT NULL ORDER BY external_id LIMIT 1`,
    );
    return rows[0];
  }

  /** The person that a platform user belongs or belonged to. */
  async ownerOf(tx: PoolClient, platformUserId: string): Promise<PersonRow | undefined> {
    const { rows } = await tx.query<{ id: string }>(
      `SELECT coalesce((SELECT id FROM people WHERE platform_user_id = $1),
         (SELECT person_id FROM platform_users WHERE platform_user_id = $1)) AS id`,
      [platformUserId],
    );
    return rows[0]?.id ? this.find({ id: rows[0].id }, tx) : undefined;
  }

  private async readShown(condition: string, values: unknown[]): Promise<ShownPerson[]> {
    return (await this.database.pool.query<ShownPerson>(prepared(`${READ_SHOWN} WHERE ${condition}`, values))).rows;
  }

  private async read(
    condition: string,
    values: unknown[],
    withBreakers: boolean,
    tx?: PoolClient,
  ): Promise<PersonRow[]> {
    const statement = prepared(`${withBreakers ? READ_TO_DECIDE : READ} WHERE ${condition}`, values);
    const { rows } = await (tx ?? this.database.pool).query<Parameters<typeof toPersonRow>[0]>(statement);
    return rows.map((row) => toPersonRow(row, this.breakers.base));
  }
}
