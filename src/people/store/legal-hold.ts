import type { PoolClient } from 'pg';
import { LOCKS } from '../../database/advisory-locks.js';
import type { Tx } from '../../database/prisma.service.js';

/** SQL arrays of what belongs to the clients under a legal hold. They are few, so that each array is read once. */
export const HELD_PEOPLE = 'ARRAY(SELECT id FROM people WHERE held_at IS NOT NULL)';
export const HELD_IDS = `ARRAY(SELECT external_id FROM people WHERE held_at IS NOT NULL
  UNION SELECT external_id FROM former_ids WHERE person_id = ANY (${HELD_PEOPLE}))`;
export const HELD_EMAILS = `ARRAY(SELECT email_fingerprint FROM people WHERE held_at IS NOT NULL
  UNION SELECT fingerprint FROM email_claims WHERE person_id = ANY (${HELD_PEOPLE}))`;
export const HELD_USERS = `ARRAY(SELECT platform_user_id FROM people WHERE held_at IS NOT NULL
  UNION SELECT platform_user_id FROM platform_users WHERE person_id = ANY (${HELD_PEOPLE}))`;

/** SQL condition that a value is in none of these arrays. One that is null is in none. */
export const isNotIn = (value: string, ...arrays: string[]): string =>
  `(${arrays.map((array) => `${value} = ANY (${array})`).join(' OR ')}) IS NOT TRUE`;

/** Waits for retention, which may have read the holds before. Retention then waits for the end of this transaction. */
export async function awaitRetention(tx: Tx): Promise<void> {
  await tx.$executeRaw`SELECT pg_advisory_xact_lock(${LOCKS.retention})`;
}

/** Delays new holds until the end of the transaction. */
export async function delayHolds(tx: PoolClient): Promise<void> {
  await tx.query('SELECT pg_advisory_xact_lock_shared($1)', [LOCKS.retention]);
}
