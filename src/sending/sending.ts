import { Injectable, type OnApplicationBootstrap } from '@nestjs/common';
import { Audit } from '../audit/audit.js';
import type { Actor } from '../audit/audit-record.js';
import { Env } from '../config/env.js';
import { PrismaService, type Tx } from '../database/prisma.service.js';
import { Feed } from '../feed/feed.js';
import { Problem } from '../http/problem/problem.js';
import { type Health, HealthIndicator, healthOf } from '../monitoring/health-indicator.js';
import { WorkerProcess } from '../processes/worker-process.js';
import { Restores } from './restores.js';
import type { SendingRequest, SendingResponse } from './sending.dto.js';

/** SQL condition: the row of a hold exists. */
const IS_HELD = 'EXISTS (SELECT FROM sending_hold)';

/** The holder when a process starts with HOLD_SENDING, and its reason. */
const BY_SETTING = { by: 'setting', reason: 'HOLD_SENDING' };

/**
 * The hold of calls to the platform. While sending is held, everything is received, and only reading calls are sent.
 * The hold is a row in PostgreSQL, so that it applies to all processes immediately and survives restarts.
 */
@Injectable()
export class Sending implements OnApplicationBootstrap {
  private isHeld = false;

  constructor(
    private readonly prisma: PrismaService,
    private readonly env: Env,
    private readonly audit: Audit,
    private readonly feed: Feed,
    private readonly restores: Restores,
    worker: WorkerProcess,
  ) {
    worker.watch(IS_HELD, (isHeld) => {
      this.isHeld = isHeld;
    });
  }

  /** True if sending was held at this process's last heartbeat; for views. */
  get isHeldNow(): boolean {
    return this.env.HOLD_SENDING || this.isHeld;
  }

  /** Keeps the hold when the setting is removed: only a release ends it. It may follow an operator's hold of a backup. */
  async onApplicationBootstrap(): Promise<void> {
    if (!this.env.HOLD_SENDING) return;
    await this.prisma.transaction(async (tx) => {
      const isNew = await this.hold(tx, BY_SETTING, BY_SETTING.by);
      if (isNew) await this.audit.system('sending.held', {}, BY_SETTING.reason, tx);
    });
  }

  /** SQL condition for claims and due times: sending is held. */
  get heldSql(): string {
    return this.env.HOLD_SENDING ? 'TRUE' : IS_HELD;
  }

  /** True if a call that changes something may be sent now, by the database. Ask before each one. */
  async isAllowed(): Promise<boolean> {
    return !this.env.HOLD_SENDING && (await this.prisma.sendingHold.findFirst()) === null;
  }

  async read(db: Pick<Tx, 'sendingHold'> = this.prisma): Promise<SendingResponse> {
    const hold = await db.sendingHold.findFirst();
    const heldBySetting = this.env.HOLD_SENDING;
    const none = { by: null, reason: null };
    const { by, reason } = hold ? { by: hold.heldBy, reason: hold.reason } : heldBySetting ? BY_SETTING : none;
    return { held: heldBySetting || hold !== null, heldBySetting, since: hold?.since ?? null, by, reason };
  }

  /** Names the start, the holder and the reason of a hold, and how to release it. */
  @HealthIndicator({ name: 'sending', needs: ['database'] })
  async health(): Promise<Health> {
    const { held, heldBySetting, since, by, reason } = await this.read();
    const command = `npx notebridge release${by === BY_SETTING.by ? ', with --restored after a restore' : ''}`;
    const values = { by: by ?? '', reason: reason ?? '', command };
    return healthOf([
      heldBySetting && { code: 'sending-held-by-setting' },
      held && !heldBySetting && { code: 'sending-held', values, ...(since && { since }) },
    ]);
  }

  /**
   * Holds or releases sending, with its audit entry. A release after a restore raises the epoch of the feed.
   *
   * @throws {Problem} 409 `held-by-setting` for a release while HOLD_SENDING is set
   */
  async set({ held, reason, restored = false }: SendingRequest, by: Actor): Promise<SendingResponse> {
    if (!held && this.env.HOLD_SENDING) {
      const detail = 'HOLD_SENDING is true, so sending stays held. Remove the setting, restart, then release.';
      throw new Problem('held-by-setting', detail);
    }
    const set = await this.prisma.transaction(
      async (tx) => {
        if (held) await this.hold(tx, { by: by.id, reason: reason ?? '' }, null);
        else await this.release(tx, restored);
        const because = reason === undefined ? '' : ` for ${reason}`;
        await this.audit.store(tx, `${held ? 'held' : 'released'}${because}${restored ? ', restored' : ''}`);
        return this.read(tx);
      },
      restored ? 'bulk' : 'usual',
    );
    this.isHeld = held;
    return set;
  }

  /** Stores a hold from now on, unless `kept` holds. @returns false if so */
  private async hold(tx: Tx, { by, reason }: typeof BY_SETTING, kept: string | null): Promise<boolean> {
    const stored = await tx.$executeRaw`
      INSERT INTO sending_hold AS h (held_by, reason) VALUES (${by}, ${reason})
      ON CONFLICT (id) DO UPDATE SET held_by = excluded.held_by, reason = excluded.reason, since = excluded.since
      WHERE h.held_by IS DISTINCT FROM ${kept}`;
    return stored > 0;
  }

  /** A database that was restored without a hold counts as restored now. */
  private async release(tx: Tx, restored: boolean): Promise<void> {
    const [hold] = await tx.$queryRaw<[{ since: Date }]>`
      WITH hold AS (DELETE FROM sending_hold RETURNING since)
      SELECT coalesce(max(since), clock_timestamp()) AS since FROM hold`;
    if (!restored) return;
    await this.feed.raiseEpoch(tx);
    await this.restores.release(tx, hold.since);
  }
}
