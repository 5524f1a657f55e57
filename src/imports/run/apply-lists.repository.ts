import { Injectable } from '@nestjs/common';
import type { PoolClient } from 'pg';
import { CHANGES, IN_BATCH } from '../model/batch-rows.js';
import { namesOneOf } from '../model/names-one-of.js';

/** The lists of providers that the clients of a batch name. */
@Injectable()
export class ApplyListsRepository {
  /**
   * Keeps the providers whom the clients of a batch name from being deleted until the transaction ends. One who was
   * there when the plan was made may be gone: then its clients' lists would be others than planned, and those are left.
   */
  async lockProviders(tx: PoolClient, importId: string, batch: number[]): Promise<void> {
    const { rows: named } = await tx.query<{ externalId: string }>(
      `SELECT DISTINCT unnest(r.providers) AS "externalId" FROM import_rows r WHERE ${IN_BATCH} AND r.outcome = 'pending'`,
      [importId, batch],
    );
    const { rows: there } = await tx.query<{ externalId: string }>(
      `SELECT external_id AS "externalId" FROM people
       WHERE kind = 'provider' AND external_id = ANY ($1) AND wanted ORDER BY id FOR SHARE`,
      [named.map(({ externalId }) => externalId)],
    );
    const known = new Set(there.map(({ externalId }) => externalId));
    const gone = named.map(({ externalId }) => externalId).filter((externalId) => !known.has(externalId));
    if (gone.length === 0) return;
    await tx.query(
      `UPDATE import_rows r SET outcome = 'skipped', code = 'changed-since-plan',
         hint = 'A provider of this client was taken back or deleted after the plan was made: retry to plan it anew.'
       WHERE ${IN_BATCH} AND r.outcome = 'pending' AND ${namesOneOf('$3')}`,
      [importId, batch, gone],
    );
  }

  /**
   * Replaces the wanted lists; a client whose providers are not mirrored yet waits at once, as `nextStep` would say.
   *
   * @param people who is wanted by the rows of the batch
   */
  async want(tx: PoolClient, importId: string, batch: number[], people: string[]): Promise<void> {
    await tx.query('DELETE FROM client_providers WHERE client_id = ANY ($1::uuid[])', [people]);
    await tx.query(
      `INSERT INTO client_providers (client_id, position, provider_id)
       SELECT r.person_id, named.position - 1,
         (SELECT q.id FROM people q WHERE q.kind = 'provider' AND q.external_id = named.external_id)
       FROM import_rows r CROSS JOIN unnest(r.providers) WITH ORDINALITY AS named(external_id, position)
       WHERE ${IN_BATCH} AND r.kind = 'client' AND r.outcome = 'pending' AND ${CHANGES}
       ON CONFLICT (client_id, provider_id) DO NOTHING`,
      [importId, batch],
    );
    await tx.query(
      `WITH clients AS MATERIALIZED (
         SELECT id, kind, email_fingerprint, attempt_look_up_at, review FROM people WHERE id = ANY ($1::uuid[]))
       UPDATE people SET state = 'waiting', error_code = 'provider-not-mirrored', due_at = NULL
       WHERE id = ANY (ARRAY(SELECT p.id FROM clients p WHERE p.kind = 'client' AND p.email_fingerprint IS NULL AND p.attempt_look_up_at IS NULL
         AND p.review IS NULL AND (SELECT true FROM client_providers cp JOIN people q ON q.id = cp.provider_id
           WHERE cp.client_id = p.id AND (q.platform_user_id IS NULL OR NOT q.wanted) LIMIT 1)))`,
      [people],
    );
  }
}
