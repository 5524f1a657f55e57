import { Injectable } from '@nestjs/common';
import { Database } from '../database/database.js';
import { type Family, familyOf } from '../database/former-ids.js';
import { FormerIdsRepository } from '../people/store/former-ids.repository.js';
import { usersOf } from '../people/store/person-users.js';
import { ENDED_AS } from '../sessions/model/session-columns.js';
import type { DisclosureResponse } from './client-records.dto.js';

/** A client, with the clients merged into it, and their current and former ids and platform users. */
interface DisclosedClient extends Family {
  users: string[];
}

/** The end of a page: the time when the accounting was started, and the date and mark of the last group. */
export type DisclosurePlace = [asOf: string, at: string, mark: string];

/** A group of disclosures with its position. */
interface PlacedDisclosure extends DisclosureResponse {
  mark: string;
  asOf: Date;
}

const TO_PLATFORM = `'platform' AS recipient, NULL AS "keyId", NULL AS "keyName", NULL AS "onBehalfOf", NULL AS purpose`;

/** Ignores disclosures after the first page was read, because repeats would move groups between pages. */
const AS_OF = `coalesce($4::timestamptz, date_trunc('milliseconds', now()) + interval '1 millisecond')`;

/**
 * The updates sent for sessions of users $2, from the audit log. It has an entry before each update is sent, and another
 * one if the update fails. Entries may contain either id of a session.
 */
const SENT_UPDATES = `
  SELECT min(e.at), CASE e.action WHEN 'PATCH /v1/sessions/:id' THEN 'updateSession' ELSE 'updateSessionTemplates' END,
    coalesce(max(e.outcome) FILTER (WHERE e.outcome <> 'begun'), 'sent'), ARRAY[s.shown_id::text], ${TO_PLATFORM}
  FROM sessions s
  CROSS JOIN LATERAL (
    SELECT DISTINCT entry FROM audit_subjects WHERE kind = 'session' AND subject IN (s.id::text, s.shown_id::text)) AS named
  CROSS JOIN LATERAL (SELECT * FROM audit_entries WHERE id = named.entry
    AND action IN ('PATCH /v1/sessions/:id', 'PUT /v1/sessions/:id/note-templates') OFFSET 0) AS e
  WHERE s.client_user_ids && $2::text[]
  GROUP BY s.id, e.action, e.request_id
  HAVING bool_or(e.outcome = 'begun') AND NOT bool_or(e.outcome IN ('platform-unreachable', 'not-configured'))`;

/**
 * The calls about the people $1, the requests for sessions of its users $2 and their updates, and the audit entries of
 * the clients $3, grouped by repeats. OFFSET 0 prevents the planner from choosing another join.
 */
const DISCLOSURES = `
  WITH disclosed AS (
    SELECT granted_at AS at, operation AS action, coalesce(outcome, 'unknown') AS outcome, '{}'::text[] AS sessions,
      ${TO_PLATFORM}
    FROM platform_calls WHERE person_id = ANY ($1::uuid[]) AND outcome IS DISTINCT FROM 'not-sent'
    UNION ALL
    SELECT attempted_at, 'createSession', lower(CASE WHEN settled_at IS NULL THEN state ELSE ${ENDED_AS} END),
      ARRAY[shown_id::text], ${TO_PLATFORM}
    FROM sessions WHERE client_user_ids && $2::text[] AND attempted_at IS NOT NULL
    UNION ALL ${SENT_UPDATES}
    UNION ALL
    SELECT e.at, e.action, e.outcome, ARRAY(
        SELECT subject FROM audit_subjects WHERE entry = e.id AND kind = 'session' ORDER BY subject),
      'ehr', e.key_id, e.key_name, e.on_behalf_of, e.purpose
    FROM (SELECT entry FROM audit_subjects WHERE kind = 'client' AND subject = ANY ($3::text[])) AS named
    CROSS JOIN LATERAL (SELECT * FROM audit_entries WHERE id = named.entry AND key_id <> 'system' OFFSET 0) AS e),
  grouped AS (
    SELECT date_trunc('milliseconds', max(at)) AS at, min(at) AS "firstAt", count(*)::int AS count, recipient, action,
      outcome, sessions, "keyId", "keyName", "onBehalfOf", purpose,
      md5(ROW(recipient, action, outcome, sessions, "keyId", "keyName", "onBehalfOf", purpose)::text) AS mark
    FROM disclosed WHERE at <= ${AS_OF}
    GROUP BY recipient, action, outcome, sessions, "keyId", "keyName", "onBehalfOf", purpose)
  SELECT *, ${AS_OF} AS "asOf" FROM grouped
  WHERE $5::timestamptz IS NULL OR (at, mark) < ($5, $6)
  ORDER BY at DESC, mark DESC LIMIT $7`;

/** Reads the disclosures of a client. */
@Injectable()
export class DisclosuresRepository {
  constructor(
    private readonly database: Database,
    private readonly formerIds: FormerIdsRepository,
  ) {}

  /** @throws {Problem} 409 `renamed` or `merged` */
  async find(externalId: string): Promise<DisclosedClient | undefined> {
    const { pool } = this.database;
    await this.formerIds.refuse('client', [externalId]);
    const family = await familyOf(pool, 'client', externalId);
    if (family.people.length === 0) return undefined;
    return { ...family, users: await usersOf(pool, { kind: 'client', externalId }) };
  }

  /** Groups of disclosures, most recently repeated first. @param place the end of the previous page */
  async list(
    { people, users, externalIds }: DisclosedClient,
    place: DisclosurePlace | undefined,
    limit: number,
  ): Promise<PlacedDisclosure[]> {
    const values = [people, users, externalIds, ...(place ?? [null, null, null]), limit];
    // In the bulk pool, because a client that a program polls every minute has hundreds of thousands of entries.
    return (await this.database.bulkPool.query<PlacedDisclosure>(DISCLOSURES, values)).rows;
  }
}
