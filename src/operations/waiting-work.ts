import { Injectable } from '@nestjs/common';
import { Database } from '../database/database.js';
import { Metrics } from '../http/server/metrics.js';
import { Contract } from '../platform/contract/contract.js';
import { BY_INDEXES, oldestDue } from './overview/oldest-due.js';

const HELP =
  'Seconds that the longest due work of a kind has waited, of all processes, and notes since the event that no fetch has answered; 0 when none is';

/** How late the workers are. */
@Injectable()
export class WaitingWork {
  constructor(database: Database, contract: Contract, metrics: Metrics) {
    metrics.gauge('oldest_due_seconds', HELP, ['kind'], async (gauge) => {
      const oldest = await database.transaction(async (tx) => {
        await tx.query(BY_INDEXES);
        return oldestDue(tx, contract);
      });
      for (const [kind, { seconds }] of oldest) gauge.set({ kind }, seconds);
    });
  }
}
