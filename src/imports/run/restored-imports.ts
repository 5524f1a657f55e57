import { Injectable } from '@nestjs/common';
import type { PoolClient } from 'pg';
import { RestoredPeople } from '../../people/reconcile/restored-people.js';
import { Restores } from '../../sending/restores.js';

/**
 * Imports that were not finished when sending was released after a restore. Their rows that start later may name clients
 * that the platform has, like those that started before.
 */
@Injectable()
export class RestoredImports {
  constructor(
    restores: Restores,
    private readonly people: RestoredPeople,
  ) {
    restores.register({
      released: async (tx, restoredAt) => {
        if (!restoredAt) return;
        const where = { state: { notIn: ['completed' as const, 'cancelled' as const, 'failed' as const] } };
        await tx.import.updateMany({ where, data: { restored: true } });
      },
    });
  }

  /** Keeps clients whose rows start now from being created twice. */
  async keepUnknown(tx: PoolClient, importId: string, ids: readonly string[]): Promise<void> {
    const { rowCount } = await tx.query('SELECT FROM imports WHERE id = $1 AND restored', [importId]);
    if (rowCount === 1) await this.people.keepUnknown(tx, ids);
  }
}
