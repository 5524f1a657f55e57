import { Injectable } from '@nestjs/common';
import { SYSTEM } from '../audit/audit-record.js';
import { Database } from '../database/database.js';
import { type Family, familyOf } from '../database/former-ids.js';
import { FormerIdsRepository } from '../people/store/former-ids.repository.js';
import { usersOf } from '../people/store/person-users.js';
import { NOT_SENT, sendingOf } from '../platform/send/sent-data.js';
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

/** Ignores disclosures after the first page was read, because repeats would move groups between pages. */
const AS_OF = `coalesce($3::timestamptz, date_trunc('milliseconds', now()) + interval '1 millisecond')`;

/**
 * SQL of the reason why the accounting that an individual asks for may leave an entry out (45 CFR 164.528(a)(1)); null if
 * it may not. The platform works for treatment and operations; others say their purpose (HL7 v3 PurposeOfUse).
 */
const EXCLUDED = `CASE WHEN "toPlatform" OR purpose IN ('TREAT', 'ETREAT', 'CAREMGT', 'HPAYMT', 'HOPERAT')
    THEN 'treatment-payment-operations'
  WHEN purpose = 'PATRQT' THEN 'individual' WHEN purpose = 'FAMRQT' THEN 'involved-in-care' END`;

/**
 * The audit entries of the clients $1, and those about sessions of their users $2, grouped by repeats. Of the service's
 * own entries, those about data sent to the platform; one that was not sent after all has a second entry. OFFSET 0
 * prevents the planner from choosing another join.
 */
const DISCLOSURES = `
  WITH named AS MATERIALIZED (
    SELECT entry FROM audit_subjects WHERE kind = 'client' AND subject = ANY ($1::text[])
    UNION
    SELECT about.entry FROM sessions s CROSS JOIN LATERAL (
      SELECT entry FROM audit_subjects WHERE kind = 'session' AND subject IN (s.id::text, s.shown_id::text)) AS about
    WHERE s.client_user_ids && $2::text[]),
  entries AS (
    SELECT e.*, e.key_id = '${SYSTEM.id}' AS "toPlatform", ARRAY(
      SELECT subject FROM audit_subjects WHERE entry = e.id AND kind = 'session' ORDER BY subject) AS sessions
    FROM named CROSS JOIN LATERAL (SELECT * FROM audit_entries
      WHERE id = named.entry AND at <= ${AS_OF} AND (key_id <> '${SYSTEM.id}' OR action LIKE '${sendingOf('%')}') OFFSET 0) AS e),
  disclosed AS (
    SELECT at, outcome <> '${NOT_SENT}' OR NOT "toPlatform" AS "isSent", sessions, purpose, on_behalf_of AS "onBehalfOf",
      CASE WHEN "toPlatform" THEN 'platform' ELSE 'ehr' END AS recipient,
      CASE WHEN "toPlatform" THEN substr(action, ${sendingOf('').length + 1}) ELSE action END AS action,
      CASE WHEN "toPlatform" THEN 'sent' ELSE outcome END AS outcome,
      CASE WHEN NOT "toPlatform" THEN key_id END AS "keyId", CASE WHEN NOT "toPlatform" THEN key_name END AS "keyName",
      ${EXCLUDED} AS excluded
    FROM entries),
  grouped AS (
    SELECT date_trunc('milliseconds', max(at) FILTER (WHERE "isSent")) AS at, min(at) FILTER (WHERE "isSent") AS "firstAt",
      (2 * count(*) FILTER (WHERE "isSent") - count(*))::int AS count, recipient, action, outcome, sessions, "keyId",
      "keyName", "onBehalfOf", purpose, excluded,
      md5(ROW(recipient, action, outcome, sessions, "keyId", "keyName", "onBehalfOf", purpose)::text) AS mark
    FROM disclosed
    GROUP BY recipient, action, outcome, sessions, "keyId", "keyName", "onBehalfOf", purpose, excluded)
  SELECT *, ${AS_OF} AS "asOf" FROM grouped
  WHERE count > 0 AND ($4::timestamptz IS NULL OR (at, mark) < ($4, $5))
  ORDER BY at DESC, mark DESC LIMIT $6`;

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
    { users, externalIds }: DisclosedClient,
    place: DisclosurePlace | undefined,
    limit: number,
  ): Promise<PlacedDisclosure[]> {
    const values = [externalIds, users, ...(place ?? [null, null, null]), limit];
    // In the bulk pool, because a client that a program polls every minute has hundreds of thousands of entries.
    return (await this.database.bulkPool.query<PlacedDisclosure>(DISCLOSURES, values)).rows;
  }
}
