import { Injectable } from '@nestjs/common';
import { Database } from '../database/database.js';
import { usersOf } from '../people/store/person-users.js';
import type { DisclosureResponse } from './client-records.dto.js';

/** A client with the users of the platform that it is or was. */
interface DisclosedClient {
  id: string;
  externalId: string;
  users: string[];
}

/** Where a page of an accounting ended: the moment at which it was begun, and the last group's last date and mark. */
export type DisclosurePlace = [asOf: string, at: string, mark: string];

/** A group of disclosures with its place in the list. */
interface PlacedDisclosure extends DisclosureResponse {
  mark: string;
  asOf: Date;
}

const CLIENT = `SELECT id FROM people WHERE kind = 'client' AND external_id = $1`;

const TO_PLATFORM = `'platform' AS recipient, NULL AS "keyId", NULL AS "keyName", NULL AS "onBehalfOf", NULL AS purpose`;

/** What one accounting was begun with stays its end: what comes meanwhile would move groups that were not shown yet. */
const AS_OF = `coalesce($4::timestamptz, date_trunc('milliseconds', now()) + interval '1 millisecond')`;

/**
 * The updates that were sent for sessions of the users $2, from the entries that the audit log has of each request: one
 * before it is sent, and another if it fails. An entry from before a merge names the session by its former id.
 */
const SENT_UPDATES = `
  SELECT min(e.at), CASE e.action WHEN 'PATCH /v1/sessions/:id' THEN 'updateSession' ELSE 'updateSessionTemplates' END,
    coalesce(max(e.outcome) FILTER (WHERE e.outcome <> 'begun'), 'sent'), ARRAY[s.id::text], ${TO_PLATFORM}
  FROM sessions s
  CROSS JOIN LATERAL (SELECT s.id UNION ALL SELECT a.id FROM session_aliases a WHERE a.session = s.id) AS known
  CROSS JOIN LATERAL (
    SELECT entry FROM audit_subjects WHERE kind = 'session' AND subject = known.id::text OFFSET 0) AS named
  CROSS JOIN LATERAL (SELECT * FROM audit_entries WHERE id = named.entry
    AND action IN ('PATCH /v1/sessions/:id', 'PUT /v1/sessions/:id/note-templates') OFFSET 0) AS e
  WHERE s.client_user_ids && $2::text[]
  GROUP BY s.id, e.action, e.request_id
  HAVING bool_or(e.outcome = 'begun') AND NOT bool_or(e.outcome IN ('platform-unreachable', 'not-configured'))`;

/**
 * The calls about the person $1, the requests for sessions of its users $2 and their updates, and the entries of the client
 * $3 in the audit log, with repeats in one group. OFFSET 0 keeps the planner from another join.
 */
const DISCLOSURES = `
  WITH disclosed AS (
    SELECT granted_at AS at, operation AS action, coalesce(outcome, 'unknown') AS outcome, '{}'::text[] AS sessions,
      ${TO_PLATFORM}
    FROM platform_calls WHERE person_id = $1 AND outcome IS DISTINCT FROM 'not-sent'
    UNION ALL
    SELECT r.attempted_at, 'createSession', lower(r.state), ARRAY[r.session::text], ${TO_PLATFORM}
    FROM sessions s JOIN session_requests r ON r.session = s.id
    WHERE s.client_user_ids && $2::text[] AND r.attempted_at IS NOT NULL
    UNION ALL ${SENT_UPDATES}
    UNION ALL
    SELECT e.at, e.action, e.outcome, ARRAY(
        SELECT subject FROM audit_subjects WHERE entry = e.id AND kind = 'session' ORDER BY subject),
      'ehr', e.key_id, e.key_name, e.on_behalf_of, e.purpose
    FROM (SELECT entry FROM audit_subjects WHERE kind = 'client' AND subject = $3) AS named
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

/** To whom something of a client was disclosed. */
@Injectable()
export class DisclosuresRepository {
  constructor(private readonly database: Database) {}

  async find(externalId: string): Promise<DisclosedClient | undefined> {
    const { pool } = this.database;
    const { rows } = await pool.query<{ id: string }>(CLIENT, [externalId]);
    if (!rows[0]) return undefined;
    return { ...rows[0], externalId, users: await usersOf(pool, { kind: 'client', externalId }) };
  }

  /** Groups of disclosures, the one that was repeated last first. @param place the end of the page before */
  async list(
    { id, users, externalId }: DisclosedClient,
    place: DisclosurePlace | undefined,
    limit: number,
  ): Promise<PlacedDisclosure[]> {
    const values = [id, users, externalId, ...(place ?? [null, null, null]), limit];
    // Of a client that a program polls each minute the trail has hundreds of thousands of entries.
    return (await this.database.bulkPool.query<PlacedDisclosure>(DISCLOSURES, values)).rows;
  }
}
