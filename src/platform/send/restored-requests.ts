import { type PrismaService } from '../../database/prisma.service.js';
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
  prisma: PrismaService,
  { name, columns }: RequestTable,
  requestedAt: 'requested_at' | 'created_at',
  outcomes: Pick<RequestOutcomes<Row, never>, 'unknown'>,
): void {
  restores.register({
    released: async (tx, heldSince) => {
      const sql = prisma.sql(tx);
      const { rows } = await sql.query(
        `SELECT ${columns} FROM ${name} t WHERE state = 'Requested' AND ${requestedAt} < $1 ORDER BY id FOR UPDATE`,
        [heldSince],
      );
      for (const row of rows) await outcomes.unknown(sql, row as Row);
    },
  });
}
