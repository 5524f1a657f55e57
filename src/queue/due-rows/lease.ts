/**
 * A lease stands on the feature's own row: `lease_owner` (a process, `workers`), `lease_no` (raised by each claim, never
 * lowered) and `lease_safe_at`. It holds while its owner is alive, and at least until `lease_safe_at`: by then whatever
 * the owner has sent has taken effect or never will.
 */
export interface Lease {
  /** The row's primary key. */
  readonly key: string;
  readonly owner: string;
  readonly no: number;
}

/** Seconds for which every lease holds: its owner may be younger than the claimer's view of the living. */
const YOUNG_SECONDS = 2;

/**
 * The condition that no process works on a row.
 *
 * @param key the table's primary key
 * @param owner parameter: who asks
 * @param held parameter, a text array: the keys that the asker works on. A lease of its own that it knows nothing of is
 *   left of a claim or a settle whose commit got no answer.
 */
export const isFree = (key: string, owner: string, held: string): string =>
  `(lease_owner IS NULL OR (lease_safe_at <= now()
     AND (lease_owner <> ALL (ARRAY(SELECT id FROM workers WHERE alive_until > now()))
       OR (lease_owner = ${owner} AND ${key}::text <> ALL (${held}::text[])))))`;

/** The condition that a live process works on a row, or that what a dead one has sent may still take effect. */
export const IS_LEASED = `(lease_owner IS NOT NULL AND (lease_safe_at > now()
  OR lease_owner = ANY (ARRAY(SELECT id FROM workers WHERE alive_until > now()))))`;

/**
 * Assignments that lease a row.
 *
 * @param owner parameter: who takes it
 * @param effectMs parameter: milliseconds after which what is now sent has taken effect or never will; 0 for a read
 */
export const take = (owner: string, effectMs: string): string =>
  `lease_owner = ${owner}, lease_no = lease_no + 1,
   lease_safe_at = now() + greatest(${effectMs} * interval '1 millisecond', interval '${YOUNG_SECONDS} seconds')`;

/** The end of the time for which a lease holds although its owner has died. @param now the database clock */
export const safeAtOf = (now: Date, effectMs: number): Date =>
  new Date(now.getTime() + Math.max(effectMs, YOUNG_SECONDS * 1_000));

/** The condition that the asker's process is alive, so that what it leases stays its own. */
export const isAlive = (owner: string): string =>
  `EXISTS (SELECT FROM workers WHERE id = ${owner} AND alive_until > now())`;

/** The condition that a lease is still held; it belongs into every statement that stores what came of the work. */
export const isHeld = (owner: string, no: string): string => `lease_owner = ${owner} AND lease_no = ${no}`;

/** Assignments that release a lease. */
export const RELEASE = 'lease_owner = NULL, lease_safe_at = NULL';
