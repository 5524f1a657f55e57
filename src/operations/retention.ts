import { Injectable, Logger, type OnModuleDestroy, type OnModuleInit } from '@nestjs/common';
import { Audit } from '../audit/audit.js';
import { Clock } from '../config/clock.js';
import { Env } from '../config/env.js';
import { Database } from '../database/database.js';
import { PrismaService } from '../database/prisma.service.js';
import { delayHolds } from '../people/store/legal-hold.js';
import { Intervals } from '../queue/work/intervals.js';
import { BATCH, retentionRules } from './retention-rules.js';

const DAY_MS = 86_400_000;

/** How often a round runs: well under a day, because a restart resets the timer. */
const EVERY_MS = DAY_MS / 8;

/** Removes what was kept long enough, by kind, and records it in the audit log. */
@Injectable()
export class Retention implements OnModuleInit, OnModuleDestroy {
  private readonly log = new Logger(Retention.name);
  private stopped = false;

  constructor(
    private readonly prisma: PrismaService,
    private readonly database: Database,
    private readonly env: Env,
    private readonly clock: Clock,
    private readonly intervals: Intervals,
    private readonly audit: Audit,
  ) {}

  onModuleInit(): void {
    this.intervals.every(EVERY_MS, 'retention', async () => {
      const dropped = await this.dropOld();
      if (Object.values(dropped).some((rows) => rows > 0)) this.log.log({ msg: 'old rows were dropped', ...dropped });
    });
  }

  onModuleDestroy(): void {
    this.stopped = true;
  }

  /** Removes old rows, one transaction per batch. @returns the removed rows by kind */
  async dropOld(): Promise<Record<string, number>> {
    const dropped: Record<string, number> = {};
    for (const [kind, { days, statement }] of Object.entries(retentionRules(this.env))) {
      if (days === 'off') continue;
      const moment = new Date(this.clock.now().getTime() - days * DAY_MS);
      let rows = BATCH;
      while (rows === BATCH && !this.stopped) {
        rows = await this.dropBatch(kind, statement, moment);
        dropped[kind] = (dropped[kind] ?? 0) + rows;
      }
    }
    return dropped;
  }

  /** Removes a batch and records it in the audit log, in one transaction. */
  private dropBatch(kind: string, statement: string, moment: Date): Promise<number> {
    return this.database.transaction(async (tx) => {
      await delayHolds(tx);
      const rows = (await tx.query(statement, [moment])).rowCount ?? 0;
      if (rows > 0) await this.audit.system(`retention.${kind}`, {}, `${rows} removed`, await this.prisma.in(tx));
      return rows;
    }, 'bulk');
  }
}
