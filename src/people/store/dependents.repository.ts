import { Injectable } from '@nestjs/common';
import type { PoolClient } from 'pg';
import { Database, prepared } from '../../database/database.js';
import { type Tx } from '../../database/prisma.service.js';
import type { Person } from '../model/person.js';
import { ProfileSeal } from '../model/profile.js';
import type { PersonRow } from './person-row.js';

/** Maximum clients of a provider to requeue in one transaction. */
const BATCH = 500;

/** Waiting clients that `requeueOverlooked` reads in one round. */
const SLICE = 1_000;

/** Sorts before every id. */
const NO_ID = '00000000-0000-0000-0000-000000000000';

/** SQL assignments that make a person due now, with its next step to be decided again. */
const REQUEUE = 'due_at = clock_timestamp(), step = NULL';

/** An email that a person wants to claim. */
interface WantedClaim {
  id: string;
  fingerprints: Buffer[];
}

interface EmailClaim {
  fingerprint: Uint8Array<ArrayBuffer>;
  holderId: string;
}

/** SQL condition: a provider of client `p` is not assignable yet (`assignableUser`). */
const LACKS_PROVIDER = `EXISTS (SELECT 1 FROM client_providers cp JOIN people q ON q.id = cp.provider_id
  WHERE cp.client_id = p.id AND (q.platform_user_id IS NULL OR NOT q.wanted OR q.attempt_call_id IS NOT NULL))`;

/** Requeues people whose next step depends on a person that changed. The step is decided when they are claimed. */
@Injectable()
export class DependentsRepository {
  /** The external id after which the next round of `requeueOverlooked` starts. */
  private overlookedUpTo = '';

  constructor(
    private readonly database: Database,
    private readonly seal: ProfileSeal,
  ) {}

  /**
   * Schedules a requeue of the clients of a newly assignable provider (`requeueClients`). The provider's own transaction
   * does not requeue them, because there may be hundreds of thousands.
   */
  async scheduleClientsOf(tx: PoolClient, providerId: string): Promise<void> {
    await tx.query(
      `INSERT INTO dependent_requeues (provider_id) VALUES ($1)
       ON CONFLICT (provider_id) DO UPDATE SET after_client = NULL, since = clock_timestamp()`,
      [providerId],
    );
  }

  /** SQL for the poller: since when a provider has waited for `requeueClients`. */
  nextDue(): string {
    return '(SELECT since FROM dependent_requeues ORDER BY since LIMIT 1)';
  }

  /**
   * Requeues the next batch of clients of a scheduled provider, ordered by id. Each batch is a transaction, so that a
   * crash between two batches loses no client.
   *
   * @returns the number of requeued clients; undefined if no provider is scheduled, or another process has locked all
   */
  async requeueClients(): Promise<number | undefined> {
    return this.database.transaction(async (tx) => {
      const { rows } = await tx.query<{ providerId: string; afterClient: string | null }>(
        `SELECT provider_id AS "providerId", after_client AS "afterClient" FROM dependent_requeues
         ORDER BY since LIMIT 1 FOR UPDATE SKIP LOCKED`,
      );
      const [scheduled] = rows;
      if (!scheduled) return undefined;
      const { providerId } = scheduled;
      const { read, last, requeued } = await this.requeueBatch(tx, providerId, scheduled.afterClient ?? NO_ID);
      if (read < BATCH) await tx.query('DELETE FROM dependent_requeues WHERE provider_id = $1', [providerId]);
      else await tx.query('UPDATE dependent_requeues SET after_client = $2 WHERE provider_id = $1', [providerId, last]);
      return requeued;
    });
  }

  /**
   * A waiting client returns to its original position and lane, because otherwise an import would proceed provider by
   * provider. Pending clients are requeued, too, because a concurrent commit may make them wait.
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

  /** Requeues providers whose deletion waits until no client's list on the platform contains them. */
  async requeueDeleting(tx: PoolClient, platformUserIds: string[]): Promise<void> {
    if (platformUserIds.length === 0) return;
    const requeue = `UPDATE people SET ${REQUEUE} WHERE state = 'deleting' AND platform_user_id = ANY($1)`;
    await tx.query(prepared(requeue, [platformUserIds]));
  }

  /**
   * Claims an email for each of some people that has none yet. A claim has one row, by any accepted key. Rows by all of
   * them are inserted in a fixed order and the others removed before the commit, so that of two processes with different
   * first keys one waits for the other.
   *
   * @param wanted fingerprints of the email by all accepted keys, the preferred one first
   * @returns the claim of each email, in the same order
   */
  async claimEmails(tx: Tx, wanted: readonly WantedClaim[]): Promise<EmailClaim[]> {
    const all = wanted.flatMap(({ id, fingerprints }) => fingerprints.map((fingerprint) => ({ id, fingerprint })));
    const rows = await tx.$queryRaw<(EmailClaim & { isNew: boolean })[]>`
      INSERT INTO email_claims (fingerprint, person_id)
      SELECT DISTINCT ON (fingerprint) * FROM unnest(${all.map(({ fingerprint }) => fingerprint)}::bytea[],
        ${all.map(({ id }) => id)}::uuid[]) AS n(fingerprint, person_id) ORDER BY fingerprint
      ON CONFLICT (fingerprint) DO UPDATE SET fingerprint = excluded.fingerprint
      RETURNING fingerprint, person_id AS "holderId", xmax = 0 AS "isNew"`;
    const byHex = new Map(rows.map((row) => [hexOf(row.fingerprint), row]));
    const claims = wanted.map(({ id, fingerprints }) => {
      const claimed = fingerprints.flatMap((fingerprint) => byHex.get(hexOf(fingerprint)) ?? []);
      const earlier = claimed.filter(({ isNew, holderId }) => !isNew || holderId !== id);
      return (earlier.find(({ holderId }) => holderId !== id) ?? earlier[0] ?? claimed[0]) as (typeof claimed)[0];
    });
    const surplus = rows.filter((row) => row.isNew && !claims.includes(row));
    const where = { fingerprint: { in: surplus.map(({ fingerprint }) => fingerprint) } };
    if (surplus.length > 0) await tx.emailClaim.deleteMany({ where });
    return claims;
  }

  /**
   * Claims the desired email of a person. From then on the person has the fingerprint of the claim, which another key may
   * have made, so that person and claim are found by each other.
   *
   * @returns true if the person has the claim
   */
  async claimEmail(tx: Tx, row: PersonRow, person: Person): Promise<boolean> {
    const { id, profile } = row;
    const { email } = this.seal.open(row, profile as Buffer);
    const wanted = { id, fingerprints: this.seal.emailFingerprints(email as string) };
    const [claim] = await this.claimEmails(tx, [wanted]);
    if (!claim) throw new Error('An email could not be claimed.');
    const fingerprint = hexOf(claim.fingerprint);
    if (person.email !== fingerprint) {
      await tx.$executeRaw`UPDATE people SET email_fingerprint = ${claim.fingerprint} WHERE id = ${id}::uuid`;
      for (const known of [row.person, person]) known.email = fingerprint;
    }
    return claim.holderId === id;
  }

  /** Releases a person's claims except `kept`, and requeues the people that wait for them. */
  async releaseClaims(tx: Tx, id: string, kept: string[]): Promise<void> {
    await tx.$executeRaw`
      WITH released AS (
        DELETE FROM email_claims WHERE person_id = ${id}::uuid AND NOT encode(fingerprint, 'hex') = ANY (${kept})
        RETURNING fingerprint)
      UPDATE people SET due_at = clock_timestamp(), step = NULL
      WHERE email_fingerprint = ANY (ARRAY(SELECT fingerprint FROM released)) AND id <> ${id}::uuid
        AND error_code = 'email-taken'`;
  }

  /**
   * Moves the unmirrored providers of a client into the interactive lane. Locks them in a
   * fixed order, because many clients with the same providers may be changed concurrently.
   */
  async expediteProvidersOf(tx: PoolClient, clientId: string): Promise<void> {
    await tx.query(
      `UPDATE people SET lane = 'interactive' WHERE id = ANY (ARRAY(
         SELECT id FROM people WHERE lane = 'bulk' AND due_at IS NOT NULL
           AND id = ANY (ARRAY(SELECT provider_id FROM client_providers WHERE client_id = $1))
         ORDER BY id FOR NO KEY UPDATE))`,
      [clientId],
    );
  }

  /**
   * Requeues people that concurrent commits left waiting: clients whose providers are all mirrored, a slice per round,
   * and providers to delete that are no longer in a client's list that is about to change.
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

const hexOf = (fingerprint: Uint8Array): string => Buffer.from(fingerprint).toString('hex');
