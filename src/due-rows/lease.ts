/**
 * A lease is stored on the feature's own row: `lease_owner` (a process in `workers`), `lease_no` (raised by each claim)
 * and `lease_safe_at`. It is valid while its owner is alive, and at least until `lease_safe_at`, because a call that the
 * owner sent may take effect until then.
 */
export interface Lease {
  /** The row's primary key. */
  readonly key: string;
  readonly owner: string;
  readonly no: number;
}

/** Minimum duration of a lease, because another process may not see the first heartbeat of a new owner yet. */
const MIN_LEASE_SECONDS = 2;

/**
 * SQL condition: no process works on a row.
 *
 * @param key the table's primary key
 * @param owner parameter with the asking process
 * @param held parameter (text array) with the keys in progress in that process. Its other leases are free, because they
 *   remain from a claim or an outcome whose commit got no answer.
 */
export const isFree = (key: string, owner: string, held: string): string =>
  `(lease_owner IS NULL OR (lease_safe_at <= now()
     AND (lease_owner <> ALL (ARRAY(SELECT id FROM workers WHERE alive_until > now()))
       OR (lease_owner = ${owner} AND ${key}::text <> ALL (${held}::text[])))))`;

/**
 * SQL assignments that lease a row.
 *
 * @param owner parameter with the new owner
 * @param effectMs parameter: how long a call may still take effect after it was sent; 0 for a read
 */
export const take = (owner: string, effectMs: string): string =>
  `lease_owner = ${owner}, lease_no = lease_no + 1,
   lease_safe_at = now() + greatest(${effectMs} * interval '1 millisecond', interval '${MIN_LEASE_SECONDS} seconds')`;

/** The time until which a lease is valid even without heartbeats of its owner. @param now the time of the database */
export const safeAtOf = (now: Date, effectMs: number): Date =>
  new Date(now.getTime() + Math.max(effectMs, MIN_LEASE_SECONDS * 1_000));

/** SQL condition: the asking process is alive, so that its new lease is valid. */
export const isAlive = (owner: string): string =>
  `EXISTS (SELECT FROM workers WHERE id = ${owner} AND alive_until > now())`;

/** SQL condition: a lease is still held. Required in every statement that stores an outcome. */
export const isHeld = (owner: string, no: string): string => `lease_owner = ${owner} AND lease_no = ${no}`;

/** SQL assignments that release a lease. */
export const RELEASE = 'lease_owner = NULL, lease_safe_at = NULL';

/** `RELEASE` for Prisma. */
export const RELEASED = { leaseOwner: null, leaseSafeAt: null };
