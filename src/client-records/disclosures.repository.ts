import { Injectable } from '@nestjs/common';
import { SYSTEM } from '../audit/audit-record.js';
import { PrismaService } from '../database/prisma.service.js';
import { Prisma } from '../generated/prisma/client.js';
import { FormerIdsRepository, type Identity, identityOf } from '../people/store/former-ids.repository.js';
import { NOT_SENT, sendingOf } from '../platform/clients/sent-data.js';
import type { DisclosureResponse } from './client-records.dto.js';

/** The end of a page: the time when the accounting was started, and the date and mark of the last group. */
export type DisclosurePlace = [asOf: string, at: string, mark: string];

/** A group of disclosures with its position. */
interface PlacedDisclosure extends DisclosureResponse {
  mark: string;
  asOf: Date;
}

/**
 * SQL of the reason why the accounting that an individual asks for may leave an entry out (45 CFR 164.528(a)(1)); null if
 * it may not. The platform works for treatment and operations; others say their purpose (HL7 v3 PurposeOfUse).
 */
const EXCLUDED = Prisma.sql`CASE WHEN "toPlatform" OR purpose IN ('TREAT', 'ETREAT', 'CAREMGT', 'HPAYMT', 'HOPERAT')
    THEN 'treatment-payment-operations'
  WHEN purpose = 'PATRQT' THEN 'individual' WHEN purpose = 'FAMRQT' THEN 'involved-in-care' END`;

/** Prevents reading a whole table, which the planner prefers if most ranges are of one kind. */
export const BY_INDEX = Prisma.sql`SET LOCAL enable_seqscan = off`;

/** Reads the disclosures of a client. */
@Injectable()
export class DisclosuresRepository {
  constructor(
    private readonly prisma: PrismaService,
    private readonly formerIds: FormerIdsRepository,
  ) {}

  /** @throws {Problem} 409 `renamed` or `merged` */
  async find(externalId: string): Promise<Identity | undefined> {
    await this.formerIds.refuse('client', [externalId]);
    const client = await identityOf(this.prisma, { kind: 'client', externalId });
    return client.id === null ? undefined : client;
  }

  /**
   * Groups of disclosures, most recently repeated first: the audit entries of the client, and those about sessions of its
   * users, grouped by repeats. An entry is certain if it names one, and uncertain if only its range may contain one. Of
   * the service's own entries, those about data sent to the platform; one that was not sent after all has a second entry.
   * OFFSET 0 prevents the planner from choosing another join.
   *
   * @param place the end of the previous page
   */
  list({ platformUserIds: users, externalIds }: Identity, limit: number, place?: DisclosurePlace) {
    const [asOf, at, mark] = place ?? [null, null, null];
    // Ignores disclosures after the first page was read, because repeats would move groups between pages.
    const until = Prisma.sql`coalesce(${asOf}::timestamptz, date_trunc('milliseconds', now()) + interval '1 millisecond')`;
    // In the bulk pool, because a client that a program polls every minute has hundreds of thousands of entries.
    return this.prisma.transaction(async (tx) => {
      await tx.$executeRaw(BY_INDEX);
      return tx.$queryRaw<PlacedDisclosure[]>`
      WITH ids AS MATERIALIZED (
        SELECT 'client' AS kind, unnest(${externalIds}::text[]) AS id
        UNION SELECT 'session', id::text FROM sessions
        WHERE ever_client_user_ids && ${users}::text[] AND client_user_ids && ${users}::text[]),
      named AS MATERIALIZED (
        SELECT entry, bool_or("isNamed") AS "isCertain" FROM (
          SELECT one.entry, true AS "isNamed" FROM ids CROSS JOIN LATERAL (
            SELECT entry FROM audit_subjects WHERE kind = ids.kind AND subject = ids.id OFFSET 0) AS one
          UNION ALL
          SELECT many.entry, false FROM (SELECT DISTINCT kind FROM ids) AS of_kind CROSS JOIN LATERAL (
            SELECT entry FROM audit_ranges WHERE kind = of_kind.kind AND EXISTS (
              SELECT FROM ids WHERE ids.kind = of_kind.kind AND first <= ids.id AND last >= ids.id) OFFSET 0) AS many) AS every
        GROUP BY entry),
      entries AS (
        SELECT e.*, "isCertain", e.key_id = ${SYSTEM.id} AS "toPlatform", CASE WHEN "isCertain" THEN ARRAY(
          SELECT subject FROM audit_subjects WHERE entry = e.id AND kind = 'session' ORDER BY subject) ELSE '{}' END AS sessions
        FROM named CROSS JOIN LATERAL (SELECT * FROM audit_entries
          WHERE id = named.entry AND at <= ${until} AND (key_id <> ${SYSTEM.id} OR action LIKE ${sendingOf('%')}) OFFSET 0) AS e),
      disclosed AS (
        SELECT at, outcome <> ${NOT_SENT} OR NOT "toPlatform" AS "isSent", sessions, purpose, on_behalf_of AS "onBehalfOf",
          "isCertain", CASE WHEN "toPlatform" THEN 'platform' ELSE 'ehr' END AS recipient,
          CASE WHEN "toPlatform" THEN substr(action, ${sendingOf('').length + 1}::int) ELSE action END AS action,
          CASE WHEN "toPlatform" THEN 'sent' ELSE outcome END AS outcome,
          CASE WHEN NOT "toPlatform" THEN key_id END AS "keyId", CASE WHEN NOT "toPlatform" THEN key_name END AS "keyName",
          ${EXCLUDED} AS excluded
        FROM entries),
      grouped AS (
        SELECT date_trunc('milliseconds', max(at) FILTER (WHERE "isSent")) AS at, min(at) FILTER (WHERE "isSent") AS "firstAt",
          (2 * count(*) FILTER (WHERE "isSent") - count(*))::int AS count, recipient, action, outcome, sessions, "keyId",
          "keyName", "onBehalfOf", purpose, excluded, "isCertain",
          md5(ROW(recipient, action, outcome, sessions, "keyId", "keyName", "onBehalfOf", purpose, "isCertain")::text) AS mark
        FROM disclosed
        GROUP BY recipient, action, outcome, sessions, "keyId", "keyName", "onBehalfOf", purpose, excluded, "isCertain")
      SELECT *, ${until} AS "asOf" FROM grouped
      WHERE count > 0 AND (${at}::timestamptz IS NULL OR (at, mark) < (${at}::timestamptz, ${mark}))
      ORDER BY at DESC, mark DESC LIMIT ${limit}`;
    }, 'bulk');
  }
}
