import { Injectable } from '@nestjs/common';
import { Database } from '../database/database.js';
import { Metrics } from '../http/server/metrics.js';
import { Contract } from '../platform/contract/contract.js';
import { BY_INDEXES, oldestDue } from './overview/oldest-due.js';
import { awaitingDecision } from './overview/overview.repository.js';

const HELP =
  'Seconds that the longest due work of a kind has waited, of all processes, and notes since the event that no fetch has answered; 0 when none is';

const DECISION_HELP =
  'People, sessions, jobs, deliveries and imports that continue only after a decision, by kind; exact up to 1,000';

/** How late the workers are, and how much awaits a decision. */
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
    metrics.gauge('awaiting_decision', DECISION_HELP, ['kind'], async (gauge) => {
      const counts = await database.transaction(async (tx) => {
        await tx.query(BY_INDEXES);
        return awaitingDecision(tx);
      });
      for (const { kind, count } of counts) gauge.set({ kind }, count);
    });
  }
}
