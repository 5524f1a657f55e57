import { Injectable } from '@nestjs/common';
import { Database } from '../../database/database.js';
import { type Health, HealthIndicator, healthOf } from '../../monitoring/health-indicator.js';
import { healthText, type ReasonCode } from '../../monitoring/health-texts.js';
import { BY_INDEXES } from './oldest-due.js';
import type { DecisionResponse } from './overview.dto.js';

/** Maximum count, because health is read often. */
export const MAX_COUNTED = 1_000;

/** SQL of the number of rows, up to one more than are counted. */
export const count = (rows: string) =>
  `(SELECT count(*)::int FROM (SELECT FROM ${rows} LIMIT ${MAX_COUNTED + 1}) AS found)`;

interface Kind {
  /** The API path that lists them. */
  list: string;
  /** SQL, which an index answers. */
  rows: string;
}

/** People resolved with "ignore" stay failed, but are decided. */
const people = (kind: 'provider' | 'client', state: string): Kind => ({
  list: `/v1/${kind}s?state=${state}`,
  rows: `people WHERE kind = '${kind}' AND state = '${state}' AND error_code IS DISTINCT FROM 'ignored'`,
});

const deliveries = (state: string): Kind => ({
  list: `/v1/webhook-deliveries?state=${state}`,
  rows: `webhook_deliveries WHERE state = '${state}'`,
});

const imports = (condition: string): Kind => ({ list: '/v1/imports', rows: `imports WHERE ${condition}` });

/** Work that continues only after a decision, by kind. */
const DECISIONS = {
  'provider-needs-review': people('provider', 'needs-review'),
  'client-needs-review': people('client', 'needs-review'),
  'provider-failed': people('provider', 'failed'),
  'client-failed': people('client', 'failed'),
  'session-unknown': { list: '/v1/sessions?state=Unknown', rows: `sessions WHERE state = 'Unknown'` },
  'session-unreadable': {
    list: '/v1/sessions',
    rows: `sessions WHERE incomplete <> '{}' AND fetched_at > now() - interval '1 day'`,
  },
  'compliance-unknown': {
    list: '/v1/compliance/jobs?state=Unknown',
    rows: `compliance_jobs WHERE review = 'submission-unknown'`,
  },
  'compliance-result-unreadable': {
    list: '/v1/compliance/jobs?review=result-unreadable',
    rows: `compliance_jobs WHERE review = 'result-unreadable'`,
  },
  'delivery-dead': deliveries('dead'),
  'delivery-not-understood': deliveries('not-understood'),
  'import-needs-mapping': imports(`state = 'needs-mapping'`),
  'import-planned': imports(`state = 'planned' AND NOT dry_run`),
  'import-paused': imports(`state = 'paused'`),
  // Only while its plan would change something.
  'import-dry-run': imports(`state = 'planned' AND dry_run
    AND EXISTS (SELECT FROM import_rows r WHERE r.import_id = imports.id AND r.outcome = 'pending')`),
} as const satisfies Partial<Record<ReasonCode, Kind>>;

type DecisionKind = keyof typeof DECISIONS;

export const DECISION_KINDS = Object.keys(DECISIONS) as DecisionKind[];

/** A dry run needs no decision: its plan may stay unapplied. */
const isOptional = (kind: DecisionKind) => kind === 'import-dry-run';

/** Reports what awaits a decision. It degrades health, but keeps no requests away. */
@Injectable()
export class Decisions {
  constructor(private readonly database: Database) {}

  @HealthIndicator({ name: 'decisions', needs: ['database'] })
  async health(): Promise<Health> {
    const counts = await this.count();
    const reasons = DECISION_KINDS.map(
      (code) => counts[code] > 0 && !isOptional(code) && { code, values: { count: shownCount(counts[code]) } },
    );
    return healthOf(reasons, counts);
  }

  private async count(): Promise<Record<DecisionKind, number>> {
    const columns = DECISION_KINDS.map((kind) => `${count(DECISIONS[kind].rows)} AS "${kind}"`).join(', ');
    const { rows } = await this.database.transaction(async (tx) => {
      await tx.query(BY_INDEXES);
      return tx.query<Record<DecisionKind, number>>(`SELECT ${columns}`);
    });
    return rows[0] as Record<DecisionKind, number>;
  }
}

/** The kinds that have at least one, by the counts that health gave as facts. */
export function shownDecisions(counts: Health['facts']): DecisionResponse[] {
  return DECISION_KINDS.flatMap((kind) => {
    const found = Number(counts?.[kind] ?? 0);
    if (found === 0) return [];
    const [cause, action] = healthText(kind, [{ count: shownCount(found) }]);
    return { kind, count: found, cause, action, list: DECISIONS[kind].list, optional: isOptional(kind) };
  });
}

const shownCount = (found: number): string => (found > MAX_COUNTED ? `more than ${MAX_COUNTED}` : `${found}`);
