import type { PoolClient } from 'pg';

/**
 * Takes an account's log of calls along with a clock that was set back: the newest call then lies ahead of the present,
 * by the step less what has passed since it was granted. Without it every slot stays occupied, and every pause lasts,
 * for as long as the step. To be called under the budget's lock.
 *
 * A slot is kept for the whole time for which a call can occupy one: whether it was answered just now, by the new clock,
 * makes no difference then, and none is free before the platform has forgotten the call.
 *
 * @param holdMs milliseconds for which a call occupies its slot at most
 */
export async function followClock(tx: PoolClient, account: string, holdMs: number): Promise<void> {
  const { rows } = await tx.query<{ now: string; back: string }>(
    `SELECT now::text, greatest(max(granted_at) - now, '0')::text AS back
     FROM platform_calls, (SELECT clock_timestamp() AS now OFFSET 0) AS clock WHERE account = $1 GROUP BY now`,
    [account],
  );
  const [step] = rows;
  if (!step) return;
  await tx.query(
    `UPDATE platform_calls SET granted_at = granted_at - $3::interval,
       answered_at = CASE WHEN answered_at IS NOT NULL THEN greatest(granted_at, answered_at) - $3::interval END,
       expires_at = least(expires_at, clock_timestamp() + $4 * interval '1 millisecond')
     WHERE account = $1 AND granted_at > $2::timestamptz`,
    [account, step.now, step.back, holdMs],
  );
  await tx.query(
    `UPDATE call_budgets SET bulk_next_at = least(bulk_next_at, $2::timestamptz),
       blocked_until = CASE WHEN blocked_until > $2::timestamptz THEN blocked_until - $3::interval ELSE blocked_until END
     WHERE account = $1`,
    [account, step.now, step.back],
  );
}
