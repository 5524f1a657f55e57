import { Injectable } from '@nestjs/common';
import type { Tx } from '../database/prisma.service.js';

/** A feature's handling of calls that may have been sent after the backup. */
interface RestoreWork {
  /**
   * Sending is released after a restore, in this transaction.
   *
   * @param heldSince nothing was sent from then on
   */
  released(tx: Tx, heldSince: Date): Promise<void>;
}

/** Notifies features of a release after a restore, so that they send nothing twice. They register themselves. */
@Injectable()
export class Restores {
  private readonly works: RestoreWork[] = [];

  register(work: RestoreWork): void {
    this.works.push(work);
  }

  /** Registers what must end before the others, because it makes rows that they look for. */
  registerFirst(work: RestoreWork): void {
    this.works.unshift(work);
  }

  async release(tx: Tx, heldSince: Date): Promise<void> {
    for (const work of this.works) await work.released(tx, heldSince);
  }
}
