import { Injectable, Logger } from '@nestjs/common';
import { Env } from '../../config/env.js';
import { PrismaService } from '../../database/prisma.service.js';
import { errorTrace } from '../../errors/error-trace.js';
import { PlatformError } from '../../platform/contract/platform-errors.js';
import { SessionsRepository } from '../model/sessions.repository.js';

/** An update that may be sent now, because a fetch after its end is committed. */
export interface BegunUpdate {
  /** Our id of the session. */
  id: string;
  /** Until when it may take effect. */
  until: Date;
  /** True if an earlier update may take effect, too. */
  isOverlapping: boolean;
}

/** Keeps until when updates of sessions may take effect. */
@Injectable()
export class UpdatesRepository {
  private readonly log = new Logger(UpdatesRepository.name);
  private readonly effectMs: number;

  constructor(
    env: Env,
    private readonly prisma: PrismaService,
    private readonly sessions: SessionsRepository,
  ) {
    this.effectMs = (env.PLATFORM_TIMEOUT_SECONDS + env.UNKNOWN_OUTCOME_GRACE_SECONDS) * 1_000;
  }

  /**
   * Commits the start of an update. The session is fetched when the update can no longer take effect, even if this process
   * ends, or the answer or the event is lost.
   */
  begin(id: string): Promise<BegunUpdate> {
    return this.prisma.transaction(async (tx) => {
      const row = await this.sessions.lockExisting(tx, id);
      const isOverlapping = row.updateUntil !== null && row.updateUntil > row.now;
      const until = new Date(Math.max(row.updateUntil?.getTime() ?? 0, row.now.getTime() + this.effectMs));
      await this.sessions.save(tx, row, { updateUntil: until });
      return { id, until, isOverlapping };
    });
  }

  /**
   * Makes the session due now. An update without an answer may still take effect, so the session is fetched again when it no
   * longer can. Without the database, only the latter.
   */
  async end({ id, until, isOverlapping }: BegunUpdate, error?: unknown): Promise<void> {
    const isLost = error !== undefined && !(error instanceof PlatformError && error.kind !== 'unknown-outcome');
    const ended = this.prisma.transaction(async (tx) => {
      const row = await this.sessions.lockExisting(tx, id);
      const isOver = !isLost && !isOverlapping && row.updateUntil?.getTime() === until.getTime();
      await this.sessions.save(tx, row, {
        changes: row.changes + 1,
        urgent: true,
        ...(isOver && { updateUntil: null }),
      });
    });
    await ended.catch((fault: unknown) =>
      this.log.warn({ msg: 'the end of an update could not be stored', ...errorTrace(fault) }),
    );
  }
}
