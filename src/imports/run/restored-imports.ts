import { Injectable } from '@nestjs/common';
import type { Tx } from '../../database/prisma.service.js';
import { Restores } from '../../sending/restores.js';

const CANCELLED = {
  state: 'cancelled',
  errorCode: 'restored',
  errorDetail:
    'The database was restored before this import had finished. Upload its files again, with platformUserId for clients without an email that the platform has, because no lookup finds them.',
};

/** Cancels all unfinished imports after a restore, because their rows may name clients that the platform has. */
@Injectable()
export class RestoredImports {
  constructor(restores: Restores) {
    restores.registerFirst({ released: (tx) => this.cancelAll(tx) });
  }

  private async cancelAll(tx: Tx): Promise<void> {
    const state = { notIn: ['completed', 'cancelled', 'failed'] };
    await tx.import.updateMany({ where: { state }, data: CANCELLED });
  }
}
