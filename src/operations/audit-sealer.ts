import { Injectable, Logger, type OnModuleInit } from '@nestjs/common';
import { Audit } from '../access/audit/audit.js';
import { sealBatch } from '../access/audit/seal-chain.js';
import {
  entriesOf,
  nextSeal,
  storeSeal,
  tryLockSealing,
  UNSEALED,
  unsealedIds,
} from '../access/audit/seals.repository.js';
import { Clock } from '../config/clock.js';
import { Env } from '../config/env.js';
import { Database } from '../database/database.js';
import { type Health, HealthIndicator } from '../http/server/health-indicator.js';
import { Poller } from '../queue/notifier/poller.js';
import { Vault } from '../vault/vault.js';

/** Entries of one seal. */
const BATCH = 2_000;

/** How often the head is logged. Kept outside the database, it proves that no later entries were removed. */
const HEAD_EVERY_MS = 3_600_000;

/** Age from which an unsealed entry degrades the health. */
const LATE_SECONDS = 60;

const DAY_MS = 86_400_000;
const PRUNE_EVERY_MS = DAY_MS / 8;

/** Seals new audit entries, in one process at a time, and removes entries older than the retention time. */
@Injectable()
export class AuditSealer implements OnModuleInit {
  private readonly log = new Logger(AuditSealer.name);
  private headLoggedMs = Number.NEGATIVE_INFINITY;

  constructor(
    private readonly database: Database,
    private readonly vault: Vault,
    private readonly audit: Audit,
    private readonly env: Env,
    private readonly clock: Clock,
    private readonly poller: Poller,
  ) {}

  onModuleInit(): void {
    this.poller.whenDue(
      'audit-seals',
      () => UNSEALED,
      () => this.sealAll(),
    );
    this.poller.every(PRUNE_EVERY_MS, 'retention-audit', () => this.prune());
  }

  /** Seals all unsealed entries, unless another process does. */
  async sealAll(): Promise<void> {
    while ((await this.sealOnce()) === BATCH);
  }

  /** @returns the number of sealed entries */
  private sealOnce(): Promise<number> {
    return this.database.transaction(async (tx) => {
      if (!(await tryLockSealing(tx))) return 0;
      const ids = await unsealedIds(tx, BATCH);
      if (ids.length === 0) return 0;
      const { previous, ...about } = await nextSeal(tx);
      const mac = (purpose: string, value: string) => this.vault.fingerprint(purpose, value);
      const seal = sealBatch(mac, about, ids, await entriesOf(tx, ids), previous);
      await storeSeal(tx, seal);
      this.logChainHead(`${seal.no}:${seal.mac.toString('hex')}`);
      return ids.length;
    });
  }

  private logChainHead(head: string): void {
    const nowMs = this.clock.monotonicMs();
    if (nowMs - this.headLoggedMs < HEAD_EVERY_MS) return;
    this.headLoggedMs = nowMs;
    this.log.log({ msg: 'the audit trail is sealed up to this head', head });
  }

  /** Removes the oldest seals with their entries, and records the last removed seal in a new entry. */
  async prune(): Promise<void> {
    const days = this.env.AUDIT_RETENTION_DAYS;
    if (days === 'off') return;
    const before = new Date(this.clock.now().getTime() - days * DAY_MS);
    for (let pruned = true; pruned; ) {
      pruned = await this.database.transaction(async (tx) => {
        const { rows } = await tx.query<{ head: string | null; entries: number }>('SELECT * FROM prune_audit($1)', [
          before,
        ]);
        const [{ head, entries } = { head: null, entries: 0 }] = rows;
        if (head !== null) await this.audit.system('retention.audit', {}, `${entries} removed up to seal ${head}`, tx);
        return head !== null;
      }, 'bulk');
    }
  }

  @HealthIndicator('audit-seals')
  async health(): Promise<Health> {
    const { rows } = await this.database.pool.query<{ seconds: number }>(
      `SELECT extract(epoch FROM clock_timestamp() - e.at)::float8 AS seconds
       FROM audit_unsealed u JOIN audit_entries e ON e.id = u.entry ORDER BY u.entry LIMIT 1`,
    );
    const seconds = Math.round(rows[0]?.seconds ?? 0);
    if (seconds < LATE_SECONDS) return { status: 'ok' };
    const reason = `Audit entries have waited ${seconds} seconds for their seal. A process with the role worker seals them within seconds: look at its log.`;
    return { status: 'degraded', reason, facts: { seconds } };
  }
}
