import { Injectable } from '@nestjs/common';
import type { Tx } from '../database/prisma.service.js';

/** A feature's handling of calls that may have been sent after the backup, in the hold's transaction. */
interface RestoreWork {
  /** The database may be a restored backup, so that earlier observations of the platform do not count. */
  begun?(tx: Tx): Promise<void>;
  /**
   * Sending is released.
   *
   * @param restoredAt when the restore was noticed; null if there was none
   */
  released(tx: Tx, restoredAt: Date | null): Promise<void>;
}

/** Notifies features of a restore, so that they send nothing twice. They register themselves. */
@Injectable()
export class Restores {
  private readonly works: RestoreWork[] = [];

  register(work: RestoreWork): void {
    this.works.push(work);
  }

  async begin(tx: Tx): Promise<void> {
    for (const work of this.works) await work.begun?.(tx);
  }

  async release(tx: Tx, restoredAt: Date | null): Promise<void> {
    for (const work of this.works) await work.released(tx, restoredAt);
  }
}
