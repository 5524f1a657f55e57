import type { Restores } from '../../sending/restores.js';
import type { RequestTable } from './request-rows.js';
import type { RequestOutcomes } from './send-once.js';

/**
 * Makes the release after a restore end the requests that the backup contains as unsent, because they may have been sent
 * after it. Their outcome is unknown, so that nothing is sent twice.
 *
 * @param requestedAt the column with the time of the request
 */
export function settleRestoredRequests<Row>(
  restores: Restores,
  { name, columns }: RequestTable,
  requestedAt: 'requested_at' | 'created_at',
  outcomes: Pick<RequestOutcomes<Row, never>, 'unknown'>,
): void {
  restores.register({
    released: async (tx, restoredAt) => {
      if (!restoredAt) return;
      const { rows } = await tx.query(
        `SELECT ${columns} FROM ${name} t WHERE state = 'Requested' AND ${requestedAt} < $1 ORDER BY id FOR UPDATE`,
        [restoredAt],
      );
      for (const row of rows) await outcomes.unknown(tx, row as Row);
    },
  });
}
