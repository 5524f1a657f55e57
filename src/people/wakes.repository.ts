import { Injectable } from '@nestjs/common';
import type { PoolClient } from 'pg';

/** Wakes people whose next step may have changed because somebody else did: they are decided on anew at their turn. */
@Injectable()
export class WakesRepository {
  /**
   * Wakes the clients that wait for a provider which was mirrored just now, or were given another; their lane stays. Who
   * waited goes where it would have gone without waiting, else an import's clients would go provider by provider.
   * Those that are pending are woken, too: one of them may be about to wait, in a commit that overlaps with this one.
   */
  async clientsOf(tx: PoolClient, providerId: string): Promise<void> {
    await tx.query(
      `UPDATE people SET due_at = least(due_at, CASE WHEN state = 'waiting' THEN wanted_at ELSE clock_timestamp() END), step = NULL
       WHERE id IN (SELECT client_id FROM client_providers WHERE provider_id = $1) AND (state IN ('waiting', 'pending') OR
         state = 'synced' AND NOT applied_providers @> (SELECT ARRAY[platform_user_id] FROM people WHERE id = $1))`,
      [providerId],
    );
  }

  /** Wakes the providers whose deletion waits until no client's list on the platform holds them. */
  async deletedProviders(tx: PoolClient, platformUserIds: string[]): Promise<void> {
    if (platformUserIds.length === 0) return;
    await tx.query(
      `UPDATE people SET due_at = clock_timestamp(), step = NULL
       WHERE state = 'deleting' AND platform_user_id = ANY($1)`,
      [platformUserIds],
    );
  }

  /** Lifts the unmirrored providers of a client into the interactive lane, also from under a paused import (trap 16). */
  async hurryProvidersOf(tx: PoolClient, clientId: string): Promise<void> {
    await tx.query(
      `UPDATE people SET lane = 'interactive', held_by = NULL
       WHERE lane = 'bulk' AND due_at IS NOT NULL AND id IN (SELECT provider_id FROM client_providers WHERE client_id = $1)`,
      [clientId],
    );
  }

  /**
   * Wakes whoever was overlooked, since a commit overlapped: clients that wait for providers which are all there, and
   * providers to be deleted whom no client's list is about to lose any more.
   */
  async overlooked(tx: Pick<PoolClient, 'query'>): Promise<void> {
    await tx.query(
      `UPDATE people p SET due_at = clock_timestamp(), step = NULL
       WHERE p.state = 'waiting' AND p.due_at IS NULL AND NOT EXISTS (
         SELECT 1 FROM client_providers cp JOIN people q ON q.id = cp.provider_id
         WHERE cp.client_id = p.id AND (q.platform_user_id IS NULL OR NOT q.wanted OR q.attempt_call_id IS NOT NULL))`,
    );
    await tx.query(
      `UPDATE people p SET due_at = clock_timestamp(), step = NULL
       WHERE p.state = 'deleting' AND p.due_at IS NULL AND p.error_code = 'clients-still-listed' AND NOT EXISTS (
         SELECT 1 FROM people c WHERE c.applied_providers @> ARRAY[p.platform_user_id] AND c.platform_user_id IS NOT NULL
           AND c.state IN ('pending', 'waiting'))`,
    );
  }
}
