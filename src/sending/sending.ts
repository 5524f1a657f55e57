import { Injectable, type OnApplicationBootstrap } from '@nestjs/common';
import { Audit } from '../audit/audit.js';
import { type Actor, SYSTEM } from '../audit/audit-record.js';
import { Env } from '../config/env.js';
import { PrismaService, type Tx } from '../database/prisma.service.js';
import { Feed } from '../feed/feed.js';
import { Problem } from '../http/problem/problem.js';
import { type Health, HealthIndicator, healthOf } from '../monitoring/health-indicator.js';
import { WorkerProcess } from '../processes/worker-process.js';
import { QUEUE_NAMES } from '../queue/backend/queue-names.js';
import { QueueNotifier } from '../queue/notifier/queue-notifier.js';
import { Restores } from './restores.js';
import type { SendingRequest, SendingResponse } from './sending.dto.js';

/** SQL condition: an operator, or a process that noticed an older database, holds sending. */
const IS_HELD = 'EXISTS (SELECT FROM sending_holds)';

/**
 * SQL condition: the database was restored, or a process started with HOLD_SENDING, and sending has not been released
 * since. A restored database contains no hold. So a restore begins with the setting, which counts as a hold.
 */
export const IS_RESTORE_PENDING = 'EXISTS (SELECT FROM sending_holds WHERE restored OR by_setting)';

/** The holder when a process starts with HOLD_SENDING. */
const BY_SETTING = 'setting';

/** The reason of a hold that a process began. */
const OLDER_DATABASE = 'older-database';

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
    private readonly notifier: QueueNotifier,
    private readonly restores: Restores,
    private readonly worker: WorkerProcess,
  ) {
    worker.watch(IS_HELD, (isHeld) => {
      this.isHeld = isHeld;
    });
    worker.onOlderDatabase(() => this.holdOlderDatabase());
  }

  /** True if sending was held at this process's last heartbeat; for views. */
  get isHeldNow(): boolean {
    return this.env.HOLD_SENDING || this.isHeld;
  }

  /** Keeps the hold when the setting is removed: only a release ends it. */
  async onApplicationBootstrap(): Promise<void> {
    if (!this.env.HOLD_SENDING) return;
    await this.prisma.transaction(async (tx) => {
      const changed = await tx.$executeRaw`
        INSERT INTO sending_holds AS h (held_by, reason, restored, by_setting)
        VALUES (${BY_SETTING}, 'HOLD_SENDING', false, true)
        ON CONFLICT (id) DO UPDATE SET by_setting = true, since = excluded.since WHERE NOT h.by_setting`;
      if (changed === 0) return;
      await this.restores.begin(tx);
      await this.audit.system('sending.held', {}, 'HOLD_SENDING', tx);
    });
  }

  /** SQL condition for claims and due times: sending is held. */
  get heldSql(): string {
    return this.env.HOLD_SENDING ? 'TRUE' : IS_HELD;
  }

  /** True if a call that changes something may be sent now. Call it before each one: it commits a mark of the call. */
  async isAllowed(): Promise<boolean> {
    return this.worker.mark(`NOT ${this.heldSql}`);
  }

  async read(db: Pick<Tx, 'sendingHold'> = this.prisma): Promise<SendingResponse> {
    const hold = await db.sendingHold.findFirst();
    const heldBySetting = this.env.HOLD_SENDING;
    const setting = heldBySetting ? { heldBy: BY_SETTING, reason: 'HOLD_SENDING' } : { heldBy: null, reason: null };
    const { since, heldBy: by, reason, restored } = hold ?? { ...setting, since: null, restored: false };
    return { held: heldBySetting || hold !== null, heldBySetting, since, by, reason, restored };
  }

  /** Names the start, the holder and the reason of a hold, and how to release it. */
  @HealthIndicator({ name: 'sending', needs: ['database'] })
  async health(): Promise<Health> {
    const { held, heldBySetting, since, by, reason, restored } = await this.read();
    const isOlder = by === SYSTEM.id;
    const flag = by === BY_SETTING ? ', with --restored after a restore' : restored ? ' --restored' : '';
    const command = `npx notebridge release${flag}`;
    const begin = since && { since };
    return healthOf([
      heldBySetting && { code: 'sending-held-by-setting' },
      held && !heldBySetting && isOlder && { code: 'older-database', values: { command }, ...begin },
      held &&
        !heldBySetting &&
        !isOlder && { code: 'sending-held', values: { by: by ?? '', reason: reason ?? '', command }, ...begin },
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
    const set = await this.prisma.transaction(async (tx) => {
      if (held) await this.hold(tx, by, reason ?? '', restored);
      else await this.release(tx, restored);
      const because = reason === undefined ? '' : ` for ${reason}`;
      await this.audit.store(tx, `${held ? 'held' : 'released'}${because}${restored ? ', restored' : ''}`);
      return this.read(tx);
    });
    this.isHeld = held;
    if (!held) for (const queue of QUEUE_NAMES) this.notifier.notify(queue);
    return set;
  }

  /** Holds because the database is older than when this process last wrote to it. A hold that exists stays, as restored. */
  async holdOlderDatabase(): Promise<void> {
    await this.prisma.transaction(async (tx) => {
      await tx.$executeRaw`
        INSERT INTO sending_holds (held_by, reason, restored) VALUES (${SYSTEM.id}, ${OLDER_DATABASE}, true)
        ON CONFLICT (id) DO UPDATE SET restored = true, since = excluded.since`;
      await this.restores.begin(tx);
      await this.audit.system('sending.held', {}, OLDER_DATABASE, tx);
    });
    this.isHeld = true;
  }

  private async hold(tx: Tx, by: Actor, reason: string, restored: boolean): Promise<void> {
    await tx.$executeRaw`
      INSERT INTO sending_holds AS h (held_by, reason, restored) VALUES (${by.id}, ${reason}, ${restored})
      ON CONFLICT (id) DO UPDATE SET held_by = excluded.held_by, reason = excluded.reason,
        restored = h.restored OR excluded.restored, since = CASE WHEN excluded.restored THEN excluded.since ELSE h.since END`;
    if (restored) await this.restores.begin(tx);
  }

  /** A database that was restored without a hold counts as restored now. */
  private async release(tx: Tx, restored: boolean): Promise<void> {
    const [hold] = await tx.$queryRaw<[{ restored: boolean; isPending: boolean; since: Date }]>`
      WITH hold AS (DELETE FROM sending_holds RETURNING restored, restored OR by_setting AS pending, since)
      SELECT coalesce(bool_or(restored), false) AS restored, coalesce(bool_or(pending), false) AS "isPending",
        coalesce(max(since), clock_timestamp()) AS since FROM hold`;
    const isRestored = restored || hold.restored;
    if (isRestored && !hold.isPending) await this.restores.begin(tx);
    if (isRestored) await this.feed.raiseEpoch(tx);
    await this.restores.release(tx, isRestored ? hold.since : null);
  }
}
