import { Injectable } from '@nestjs/common';
import type { PoolClient } from 'pg';
import { PrismaService } from '../../database/prisma.service.js';
import { Restores } from '../../sending/restores.js';
import { RESET_ASSIGNMENTS, RESTORED_ATTEMPT } from '../store/person-row.js';

/** SQL condition: a client that no lookup can find. */
const IS_BLIND = `kind = 'client' AND wanted AND platform_user_id IS NULL AND email_fingerprint IS NULL AND attempt_call_id IS NULL`;

/**
 * Keeps clients without an email from being created twice after a restore. `isRestoredUnknown` holds only until the
 * release, so that the release after a restore stores an open create for each. That one outlives retries and writes.
 */
@Injectable()
export class RestoredPeople {
  constructor(restores: Restores, prisma: PrismaService) {
    restores.register({
      begun: (tx) => this.forgetChecks(prisma.sql(tx)),
      released: (tx, restoredAt) => (restoredAt ? this.keepUnknown(prisma.sql(tx)) : this.decideAgain(prisma.sql(tx))),
    });
  }

  /** Forgets that people were absent, or rejected: they may have been created since. Decides about them again. */
  private async forgetChecks(tx: PoolClient): Promise<void> {
    await tx.query(
      `UPDATE people SET ${RESET_ASSIGNMENTS}, checked_absent_at = NULL, step = NULL, due_at = clock_timestamp()
       WHERE wanted AND platform_user_id IS NULL AND checked_absent_at IS NOT NULL OR ${IS_BLIND}`,
    );
  }

  /** Stores an open create for each client that may have been created after the backup. @param ids default: of all */
  async keepUnknown(tx: PoolClient, ids?: readonly string[]): Promise<void> {
    await tx.query(
      `UPDATE people SET ${RESTORED_ATTEMPT}
       WHERE ${IS_BLIND} AND checked_absent_at IS NULL AND ($1::uuid[] IS NULL OR id = ANY ($1))`,
      [ids ?? null],
    );
  }

  /** There was no restore, so that these clients can be created. */
  private async decideAgain(tx: PoolClient): Promise<void> {
    await tx.query(
      `UPDATE people SET step = NULL, due_at = clock_timestamp()
       WHERE kind = 'client' AND state = 'needs-review' AND error_code = 'restored-unknown' AND attempt_call_id IS NULL`,
    );
  }
}
