import { Injectable } from '@nestjs/common';
import { Database } from '../database/database.js';
import { Metrics } from '../monitoring/metrics.js';
import { Contract } from '../platform/contract/contract.js';
import { HealthChecks } from './health-checks.js';
import { DECISION_KINDS } from './overview/decisions.js';
import { BY_INDEXES, oldestDue } from './overview/oldest-due.js';

const HELP =
  'Age of the oldest due work of a kind, over all processes, and for notes since the event that no fetch has answered; 0 if none';

const DECISION_HELP =
  'People, sessions, jobs, deliveries and imports that continue only after a decision, by kind; exact up to 1,000';

/** Gauges of overdue work, and of work that awaits a decision. */
@Injectable()
export class WaitingWork {
  constructor(database: Database, contract: Contract, checks: HealthChecks, metrics: Metrics) {
    metrics.gauge('oldest_due_seconds', HELP, ['kind'], async (gauge) => {
      const oldest = await database.transaction(async (tx) => {
        await tx.query(BY_INDEXES);
        return oldestDue(tx, contract);
      });
      for (const [kind, { seconds }] of oldest) gauge.set({ kind }, seconds);
    });
    metrics.gauge('awaiting_decision', DECISION_HELP, ['kind'], async (gauge) => {
      const { facts } = (await checks.report()).checks.decisions ?? {};
      if (!facts) return gauge.reset();
      for (const kind of DECISION_KINDS) gauge.set({ kind }, Number(facts[kind]));
    });
  }
}
