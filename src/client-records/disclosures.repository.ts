import { Injectable } from '@nestjs/common';
import { IN_ORDER_OF_INDEX } from '../access/audit/audit.repository.js';
import { Database } from '../database/database.js';
import { UserLinks } from '../people/store/user-links.js';
import type { DisclosureResponse } from './client-records.dto.js';

/** A client with the users of the platform that it is or was. */
export interface DisclosedClient {
  id: string;
  externalId: string;
  users: string[];
}

/** A disclosure with its place in its source. */
export type PlacedDisclosure<Place> = DisclosureResponse & { place: Place };

const CLIENT = `SELECT id FROM people WHERE kind = 'client' AND external_id = $1`;

const TO_PLATFORM = `'platform' AS recipient, NULL AS "keyId", NULL AS "keyName", NULL AS "onBehalfOf", NULL AS purpose`;

const CALLS = `
  SELECT id::text AS place, granted_at AS at, operation AS action, coalesce(outcome, 'unknown') AS outcome,
    '{}'::text[] AS sessions, ${TO_PLATFORM}
  FROM platform_calls WHERE person_id = $1 AND outcome IS DISTINCT FROM 'not-sent' AND id < $2
  ORDER BY id DESC LIMIT $3`;

const REQUESTS = `
  SELECT ARRAY[to_json(r.attempted_at) #>> '{}', r.session::text] AS place, r.attempted_at AS at,
    'createSession' AS action, lower(r.state) AS outcome, ARRAY[r.session::text] AS sessions, ${TO_PLATFORM}
  FROM sessions s JOIN session_requests r ON r.session = s.id
  WHERE s.client_user_ids && $1::text[] AND (r.attempted_at, r.session) < ($2, $3)
  ORDER BY r.attempted_at DESC, r.session DESC LIMIT $4`;

/** By the order of the index of subjects; OFFSET 0 keeps the planner from another join. */
const READS = `
  SELECT e.id::text AS place, e.at, e.action, e.outcome, 'ehr' AS recipient, e.key_id AS "keyId", e.key_name AS "keyName",
    e.on_behalf_of AS "onBehalfOf", e.purpose, ARRAY(
      SELECT subject FROM audit_subjects WHERE entry = e.id AND kind = 'session' ORDER BY subject) AS sessions
  FROM (SELECT entry FROM audit_subjects WHERE kind = 'client' AND subject = $1 AND entry < $2 ORDER BY entry DESC) AS named
  CROSS JOIN LATERAL (SELECT * FROM audit_entries WHERE id = named.entry AND key_id <> 'system' OFFSET 0) AS e
  ORDER BY named.entry DESC LIMIT $3`;

/** To whom something of a client was disclosed: each source for itself, the newest first. */
@Injectable()
export class DisclosuresRepository {
  constructor(
    private readonly database: Database,
    private readonly links: UserLinks,
  ) {}

  /** @throws {Problem} 503 `data-unreadable` where it can't be told which users of the platform it is and was */
  async find(externalId: string): Promise<DisclosedClient | undefined> {
    const { pool } = this.database;
    const { rows } = await pool.query<{ id: string }>(CLIENT, [externalId]);
    if (!rows[0]) return undefined;
    return { ...rows[0], externalId, users: await this.links.usersOf(pool, { kind: 'client', externalId }) };
  }

  /** The user-management calls about the client. @param before id of the last one seen */
  calls({ id }: DisclosedClient, before: string, limit: number): Promise<PlacedDisclosure<string>[]> {
    return this.rows(CALLS, [id, before, limit]);
  }

  /** The sessions of the client that were asked for. @param before moment and id of the last one seen */
  requests(
    { users }: DisclosedClient,
    before: [string, string],
    limit: number,
  ): Promise<PlacedDisclosure<[string, string]>[]> {
    return this.rows(REQUESTS, [users, ...before, limit]);
  }

  /** What keys did with the client or were shown of it. @param before the last entry seen */
  reads({ externalId }: DisclosedClient, before: string, limit: number): Promise<PlacedDisclosure<string>[]> {
    return this.database.transaction(async (tx) => {
      await tx.query(IN_ORDER_OF_INDEX);
      return (await tx.query<PlacedDisclosure<string>>(READS, [externalId, before, limit])).rows;
    });
  }

  private async rows<Place>(text: string, values: unknown[]): Promise<PlacedDisclosure<Place>[]> {
    return (await this.database.pool.query<PlacedDisclosure<Place>>(text, values)).rows;
  }
}
