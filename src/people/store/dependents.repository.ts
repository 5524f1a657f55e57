import { Injectable } from '@nestjs/common';
import type { PoolClient } from 'pg';
import { Database } from '../../database/database.js';

/** Clients of one provider that are requeued in one transaction. */
const BATCH = 500;

/** Waiting clients that are read in one round for those that an overlapping commit left waiting. */
const SLICE = 1_000;

/** Sorts before every id. */
const NO_ID = '00000000-0000-0000-0000-000000000000';

/** Assignments that let a person be decided on anew as soon as possible. */
const REQUEUE = 'due_at = clock_timestamp(), step = NULL';

/** Of a client `p`: one of its providers can't be named to the platform yet (`listableUser`). */
const LACKS_PROVIDER = `EXISTS (SELECT 1 FROM client_providers cp JOIN people q ON q.id = cp.provider_id
  WHERE cp.client_id = p.id AND (q.platform_user_id IS NULL OR NOT q.wanted OR q.attempt_call_id IS NOT NULL))`;

/** People whose next step may change because another person does: they are requeued, and decided on when claimed. */
@Injectable()
export class DependentsRepository {
  /** The external id after which the next round of `requeueOverlooked` begins. */
  private overlookedUpTo = '';

  constructor(private readonly database: Database) {}

  /**
   * Notes that the clients of a provider, which can be named from now on, are to be requeued: there may be hundreds of
   * thousands, and the provider's own transaction does not wait for them (`requeueClients`).
   */
  async noteClientsOf(tx: PoolClient, providerId: string): Promise<void> {
    await tx.query(
      `INSERT INTO dependent_requeues (provider_id) VALUES ($1)
       ON CONFLICT (provider_id) DO UPDATE SET after_client = NULL, since = clock_timestamp()`,
      [providerId],
    );
  }

  /**
   * Requeues the next clients of a provider that was noted, in the order of their ids; each batch is a transaction of
   * its own, and a crash between two loses none.
   *
   * @returns how many were requeued; undefined when no provider is noted, or another process is at work on those that are
   */
  async requeueClients(): Promise<number | undefined> {
    return this.database.transaction(async (tx) => {
      const { rows } = await tx.query<{ providerId: string; afterClient: string | null }>(
        `SELECT provider_id AS "providerId", after_client AS "afterClient" FROM dependent_requeues
         ORDER BY since LIMIT 1 FOR UPDATE SKIP LOCKED`,
      );
      const [noted] = rows;
      if (!noted) return undefined;
      const { providerId } = noted;
      const { read, last, requeued } = await this.requeueBatch(tx, providerId, noted.afterClient ?? NO_ID);
      if (read < BATCH) await tx.query('DELETE FROM dependent_requeues WHERE provider_id = $1', [providerId]);
      else await tx.query('UPDATE dependent_requeues SET after_client = $2 WHERE provider_id = $1', [providerId, last]);
      return requeued;
    });
  }

  /**
   * A waiting client re-enters the queue at its original position, else an import's clients would go provider by
   * provider; its lane stays. Pending clients are requeued, too: one may be about to wait, in a commit that overlaps.
   */
  private async requeueBatch(tx: PoolClient, providerId: string, after: string) {
    const { rows } = await tx.query<{ read: number; last: string | null; requeued: number }>(
      `WITH batch AS MATERIALIZED (
         SELECT client_id FROM client_providers WHERE provider_id = $1 AND client_id > $2 ORDER BY client_id LIMIT ${BATCH}),
       wanted AS MATERIALIZED (
         SELECT p.id FROM people p WHERE p.id = ANY (ARRAY(SELECT client_id FROM batch))
           AND (p.state = 'pending' OR p.state = 'waiting' AND NOT ${LACKS_PROVIDER}
             OR p.state = 'synced' AND NOT applied_providers @> (SELECT ARRAY[platform_user_id] FROM people WHERE id = $1))
         ORDER BY p.id FOR NO KEY UPDATE),
       requeued AS (
         UPDATE people SET step = NULL,
           due_at = least(due_at, CASE WHEN state = 'waiting' THEN wanted_at ELSE clock_timestamp() END)
         WHERE id = ANY (ARRAY(SELECT id FROM wanted)) RETURNING 1)
       SELECT (SELECT count(*)::int FROM batch) AS read, (SELECT count(*)::int FROM requeued) AS requeued,
         (SELECT client_id FROM batch ORDER BY client_id DESC LIMIT 1) AS last`,
      [providerId, after],
    );
    return rows[0] ?? { read: 0, last: null, requeued: 0 };
  }

  /** Requeues the providers whose deletion waits until no client's list on the platform holds them. */
  async requeueDeleting(tx: PoolClient, platformUserIds: string[]): Promise<void> {
    if (platformUserIds.length === 0) return;
    await tx.query(`UPDATE people SET ${REQUEUE} WHERE state = 'deleting' AND platform_user_id = ANY($1)`, [
      platformUserIds,
    ]);
  }

  /** Takes the claim of an email, and releases the others. @param kept the emails to keep @returns whether it holds it */
  async claimEmail(tx: PoolClient, id: string, email: string, kept: string[]): Promise<boolean> {
    await this.releaseClaims(tx, id, kept);
    const { rows } = await tx.query<{ person_id: string }>(
      `INSERT INTO email_claims (fingerprint, person_id) VALUES (decode($1, 'hex'), $2)
       ON CONFLICT (fingerprint) DO UPDATE SET fingerprint = excluded.fingerprint RETURNING person_id`,
      [email, id],
    );
    return rows[0]?.person_id === id;
  }

  /** Releases a person's claims but those to keep, and requeues who waits for them. */
  async releaseClaims(tx: PoolClient, id: string, kept: string[]): Promise<void> {
    await tx.query(
      `WITH released AS (
         DELETE FROM email_claims WHERE person_id = $1 AND NOT encode(fingerprint, 'hex') = ANY($2::text[]) RETURNING fingerprint)
       UPDATE people SET ${REQUEUE}
       WHERE email_fingerprint = ANY (ARRAY(SELECT fingerprint FROM released)) AND id <> $1 AND error_code = 'email-taken'`,
      [id, kept],
    );
  }

  /**
   * Moves the unmirrored providers of a client into the interactive lane, also from under a paused import. They are
   * locked in one order: many clients with the same providers may be changed at once.
   */
  async expediteProvidersOf(tx: PoolClient, clientId: string): Promise<void> {
    await tx.query(
      `UPDATE people SET lane = 'interactive', paused_by_import = NULL WHERE id = ANY (ARRAY(
         SELECT id FROM people WHERE lane = 'bulk' AND due_at IS NOT NULL
           AND id = ANY (ARRAY(SELECT provider_id FROM client_providers WHERE client_id = $1))
         ORDER BY id FOR NO KEY UPDATE))`,
      [clientId],
    );
  }

  /**
   * Requeues whom overlapping commits left waiting: clients whose providers are all mirrored, a slice of them in each
   * round, and providers to be deleted that no client's list is about to lose any more.
   */
  async requeueOverlooked(): Promise<void> {
    const { rows } = await this.database.pool.query<{ read: number; last: string | null }>(
      `WITH slice AS MATERIALIZED (
         SELECT id, external_id FROM people WHERE kind = 'client' AND state = 'waiting' AND external_id > $1
         ORDER BY external_id LIMIT ${SLICE}),
       requeued AS (
         UPDATE people p SET ${REQUEUE}
         WHERE p.id = ANY (ARRAY(SELECT id FROM slice)) AND p.state = 'waiting' AND p.due_at IS NULL AND NOT ${LACKS_PROVIDER})
       SELECT (SELECT count(*)::int FROM slice) AS read,
         (SELECT external_id FROM slice ORDER BY external_id DESC LIMIT 1) AS last`,
      [this.overlookedUpTo],
    );
    const [{ read, last } = { read: 0, last: null }] = rows;
    this.overlookedUpTo = read < SLICE || last === null ? '' : last;
    await this.database.pool.query(
      `UPDATE people p SET ${REQUEUE}
       WHERE p.kind = 'provider' AND p.state = 'deleting' AND p.due_at IS NULL AND p.error_code = 'clients-still-listed'
         AND NOT EXISTS (
           SELECT 1 FROM people c WHERE c.applied_providers @> ARRAY[p.platform_user_id] AND c.platform_user_id IS NOT NULL
             AND c.state IN ('pending', 'waiting'))`,
    );
  }
}
