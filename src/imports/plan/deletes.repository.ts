import { Injectable } from '@nestjs/common';
import type { PoolClient } from 'pg';
import { MentionsRepository } from './mentions.repository.js';

/** Rows that leave what is wanted of a client as their providers cell says. */
const NAMING = `('create-or-link', 'provider-change', 'attribute-change', 'needs-review', 'unchanged')`;

/** Why a provider is not deleted. */
export const PROVIDER_IN_USE = {
  code: 'provider-in-use',
  hint: 'Clients still name this provider: give them others, then delete it.',
};

/** What a snapshot does to people whom it does not name. */
@Injectable()
export class DeletesRepository {
  constructor(private readonly mentions: MentionsRepository) {}

  /**
   * Adds a row for each person to delete, behind the last. A snapshot speaks of the kinds that stand in it only; whoever
   * is named in a row that was rejected, or mentioned where a row may have been lost, is not missing.
   */
  async plan(tx: PoolClient, importId: string): Promise<void> {
    const mentioned = await this.mentions.of(tx, importId);
    await tx.query(
      `INSERT INTO import_rows (import_id, row_no, file, line, kind, external_id, planned)
       SELECT $1, (SELECT max(row_no) FROM import_rows WHERE import_id = $1)
           + row_number() OVER (ORDER BY p.kind DESC, p.external_id), 0, 0, p.kind, p.external_id, 'delete'
       FROM people p
       WHERE p.wanted AND p.kind IN (SELECT DISTINCT kind FROM import_rows WHERE import_id = $1)
         AND NOT EXISTS (SELECT 1 FROM unnest($2::text[]) AS mentioned(id) WHERE mentioned.id = p.external_id)
         AND NOT EXISTS (SELECT 1 FROM import_rows r
           WHERE r.import_id = $1 AND coalesce(r.kind, p.kind) = p.kind AND r.external_id = p.external_id)`,
      [importId, mentioned],
    );
  }

  /** Leaves providers alone whom clients will still name when the plan is done. */
  async skipReferenced(tx: PoolClient, importId: string): Promise<void> {
    await tx.query(
      `WITH named AS (
         SELECT unnest(providers) AS external_id FROM import_rows
         WHERE import_id = $1 AND kind = 'client' AND planned IN ${NAMING}
         UNION
         SELECT q.external_id FROM client_providers cp
         JOIN people c ON c.id = cp.client_id JOIN people q ON q.id = cp.provider_id
         WHERE c.wanted AND NOT EXISTS (SELECT 1 FROM import_rows r WHERE r.import_id = $1 AND r.kind = 'client'
           AND r.external_id = c.external_id AND (r.planned = 'delete' OR r.planned IN ${NAMING})))
       UPDATE import_rows SET outcome = 'skipped', code = $2, hint = $3, field = 'providers', calls_min = 0, calls_max = 0
       WHERE import_id = $1 AND kind = 'provider' AND planned = 'delete' AND outcome = 'pending'
         AND external_id IN (SELECT external_id FROM named)`,
      [importId, PROVIDER_IN_USE.code, PROVIDER_IN_USE.hint],
    );
  }
}
