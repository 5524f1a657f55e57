import { Injectable, Logger, type OnModuleInit } from '@nestjs/common';
import { Audit } from '../access/audit/audit.js';
import { BEFORE_THE_FIRST, sealBatch } from '../access/audit/seal-chain.js';
import {
  entriesOf,
  lastSeal,
  sealingMoment,
  storeSeal,
  tryLockSealing,
  unsealedIds,
} from '../access/audit/seals.repository.js';
import { Clock } from '../config/clock.js';
import { Env } from '../config/env.js';
import { Database } from '../database/database.js';
import { type Health, HealthIndicator } from '../http/server/health-indicator.js';
import { Poller } from '../queue/notifier/poller.js';
import { Vault } from '../vault/vault.js';

/** Milliseconds between two seals. */
const EVERY_MS = 1_000;

/** Entries of one seal. */
const BATCH = 2_000;

/** Milliseconds between two log lines that hold the head: what is kept outside of the database proves the tail. */
const HEAD_EVERY_MS = 3_600_000;

/** Seconds after which an entry without a seal is worth a look. */
const LATE_SECONDS = 60;

const DAY_MS = 86_400_000;
const PRUNE_EVERY_MS = DAY_MS / 8;

/** Seals what the audit trail got, one process at a time, and cuts off what was kept long enough. */
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
    this.poller.every(EVERY_MS, 'audit-seals', () => this.sealAll());
    this.poller.every(PRUNE_EVERY_MS, 'retention-audit', () => this.prune());
  }

  /** Seals all that waits, unless another process is about it. */
  async sealAll(): Promise<void> {
    while ((await this.sealOnce()) === BATCH);
  }

  /** @returns how many entries it sealed */
  private sealOnce(): Promise<number> {
    return this.database.transaction(async (tx) => {
      if (!(await tryLockSealing(tx))) return 0;
      const ids = await unsealedIds(tx, BATCH);
      if (ids.length === 0) return 0;
      const last = (await lastSeal(tx)) ?? { no: '0', mac: BEFORE_THE_FIRST };
      const about = { no: String(BigInt(last.no) + 1n), at: await sealingMoment(tx) };
      const mac = (purpose: string, value: string) => this.vault.fingerprint(purpose, value);
      const seal = sealBatch(mac, about, ids, await entriesOf(tx, ids), last.mac);
      await storeSeal(tx, seal);
      this.tellHead(`${seal.no}:${seal.mac.toString('hex')}`);
      return ids.length;
    });
  }

  private tellHead(head: string): void {
    const nowMs = this.clock.monotonicMs();
    if (nowMs - this.headLoggedMs < HEAD_EVERY_MS) return;
    this.headLoggedMs = nowMs;
    this.log.log({ msg: 'the audit trail is sealed up to this head', head });
  }

  /** Removes the oldest seals with their entries, and says up to which in the entry that takes their place. */
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
    const reason = `Entries of the audit trail wait ${seconds} seconds for their seal, which a process with the role worker makes each second: look at its log.`;
    return { status: 'degraded', reason, facts: { seconds } };
  }
}
