import { Injectable, Logger, type OnModuleInit } from '@nestjs/common';
import { Clock } from '../config/clock.js';
import { Env } from '../config/env.js';
import { Database } from '../database/database.js';
import { PrismaService } from '../database/prisma.service.js';
import { type Health, HealthIndicator, healthOf } from '../monitoring/health-indicator.js';
import { Intervals } from '../queue/work/intervals.js';
import { Macs } from '../vault/macs.js';
import { Audit } from './audit.js';
import { BEGINNING, continues, headOf, isOldEnough, isSignedLink, type Link, linkEntries, signCut } from './chain.js';
import {
  cutLinks,
  entriesOf,
  isLinked,
  lastLink,
  linksAfter,
  missingIds,
  storeCut,
  storeLink,
  unlinkedIds,
} from './chain.repository.js';

/** Maximum entries of one link. */
const BATCH = 2_000;

/** Maximum links of one cut. */
const CUT_LINKS = 200;

/** Age from which an entry that is not linked degrades the health. */
const LATE_SECONDS = 10;

/** How long an entry without a valid MAC degrades the health. */
const FAULT_DAYS = 7;

const DAY_MS = 86_400_000;
const CUT_EVERY_MS = DAY_MS / 8;
const LINK_EVERY_MS = 1_000;

/** Links new audit entries to the chain, and removes entries older than the retention time. */
@Injectable()
export class AuditLinker implements OnModuleInit {
  private readonly log = new Logger(AuditLinker.name);
  /** Ids of entries that were read but are not linked yet: an entry that is removed before is missed. */
  private seen = new Set<string>();
  /** The newest link that this process knows. */
  private known: Pick<Link, 'no' | 'mac'> | undefined;
  /** A fault that only a restart clears. */
  private fault: string | undefined;

  constructor(
    private readonly prisma: PrismaService,
    private readonly database: Database,
    private readonly macs: Macs,
    private readonly audit: Audit,
    private readonly env: Env,
    private readonly clock: Clock,
    private readonly intervals: Intervals,
  ) {}

  onModuleInit(): void {
    this.intervals.every(LINK_EVERY_MS, 'audit-links', () => this.linkAll());
    this.intervals.every(CUT_EVERY_MS, 'retention-audit', () => this.cut());
  }

  /** Links all entries that are not linked, unless another worker does. */
  async linkAll(): Promise<void> {
    while ((await this.linkOnce()) === BATCH);
  }

  /** @returns the number of linked entries */
  private async linkOnce(): Promise<number> {
    const { pool } = this.database;
    // Remembered first, because others may delay every later statement by locks.
    for (const id of await unlinkedIds(pool, BATCH)) this.seen.add(id);
    if (this.seen.size === 0) return 0;
    // Before the queue, otherwise another worker could link the same entries in between.
    const last = await this.lastLink();
    const queued = await unlinkedIds(pool, BATCH);
    const removed = this.seen.size > 0 ? await missingIds(pool, [...this.seen]) : [];
    this.seen = new Set([...removed, ...queued]);
    const ids = [...this.seen];
    if (ids.length === 0) return 0;
    const entries = await entriesOf(pool, ids);
    const place = {
      no: String(BigInt(last?.no ?? 0) + 1n),
      at: this.clock.now().toISOString(),
      previous: last?.mac ?? BEGINNING,
    };
    const link = linkEntries(this.macs, place, ids, entries);
    if (!(await storeLink(pool, link))) return 0;
    this.seen.clear();
    this.known = link;
    const faulty = ids.filter((_, at) => link.macs[at] === null);
    if (faulty.length > 0)
      this.log.error({
        msg: 'audit entries without a valid MAC, or removed: run audit verify',
        entries: faulty.slice(0, 20),
      });
    return queued.length;
  }

  /** The newest link. A chain that lost the newest link known here was cut off. */
  private async lastLink(): Promise<Pick<Link, 'no' | 'mac'> | undefined> {
    const { pool } = this.database;
    if (this.known && !(await isLinked(pool, this.known))) {
      this.fail(`The audit log lost its link ${this.known.no}, or it was changed.`);
    }
    this.known = await lastLink(pool);
    return this.known;
  }

  private fail(fault: string): void {
    this.fault = fault;
    this.log.error({ msg: fault });
  }

  /** Forgets the chain, which was replaced on purpose. */
  forget(): void {
    this.seen.clear();
    this.known = undefined;
    this.fault = undefined;
  }

  /** The newest link, to be stored elsewhere; undefined before the first. */
  async head(): Promise<string | undefined> {
    const last = await this.lastLink();
    return last && headOf(last.no, last.mac);
  }

  /** Removes the oldest links with their entries, and signs what was removed. */
  async cut(): Promise<void> {
    const days = this.env.AUDIT_RETENTION_DAYS;
    if (days === 'off') return;
    const now = this.clock.now();
    const at = now.toISOString();
    for (;;) {
      const links = await linksAfter(this.database.bulkPool, null, CUT_LINKS + 1);
      // The newest link stays, because the next one continues it.
      const old = links.slice(0, -1).filter((link) => isOldEnough({ at, linkedAt: link.at }, days));
      const last = old.at(-1);
      if (!last) return;
      const isIntact = (link: Link, position: number) => {
        const before = links[position - 1];
        return isSignedLink(this.macs, link) && (!before || continues(link, [before.mac, ...before.former]));
      };
      if (!links.slice(0, old.length + 1).every(isIntact)) {
        return this.fail(`The retention removes no audit entries, because a link up to ${last.no} was changed.`);
      }
      const isDone = await this.database.transaction(async (tx) => {
        const entries = await cutLinks(tx, last.no, new Date(now.getTime() - days * DAY_MS));
        if (entries === null) return false; // another worker was first
        const macs = [last.mac, ...last.former];
        await storeCut(tx, signCut(this.macs, { upTo: last.no, at, linkedAt: last.at, entries, macs }));
        await this.audit.system(
          'retention.audit',
          {},
          `${entries} removed up to link ${last.no}`,
          await this.prisma.in(tx),
        );
        return true;
      }, 'bulk');
      if (!isDone) return;
    }
  }

  @HealthIndicator({ name: 'audit-chain', needs: ['worker'] })
  async health(): Promise<Health> {
    const { rows } = await this.database.pool.query<{ seconds: number | null; faulty: boolean }>(
      `SELECT (SELECT extract(epoch FROM clock_timestamp() - queued_at) FROM audit_unlinked ORDER BY entry LIMIT 1)::float8
           AS seconds,
         coalesce((SELECT at FROM audit_links WHERE array_position(macs, NULL) IS NOT NULL ORDER BY at DESC LIMIT 1)
           > now() - interval '${FAULT_DAYS} days', false) AS faulty`,
    );
    const { seconds = 0, faulty = false } = rows[0] ?? {};
    const late = Math.round(seconds ?? 0);
    const { fault } = this;
    return healthOf([
      fault !== undefined && { code: 'audit-chain-broken', values: { fault } },
      faulty && { code: 'audit-entries-altered', values: { days: FAULT_DAYS } },
      late >= LATE_SECONDS && { code: 'audit-entries-unlinked', values: { seconds: late }, follows: true },
    ]);
  }
}
