import { Injectable } from '@nestjs/common';
import type { Tx } from '../database/prisma.service.js';
import { Restores } from '../sending/restores.js';
import { RESTORED_CALL } from './rules/person.js';

/** Keeps people from being created twice after a restore, because a create may have been sent after the backup. */
@Injectable()
export class RestoredPeople {
  constructor(restores: Restores) {
    restores.register({ released: (tx) => this.released(tx) });
  }

  /** No lookup finds a client without an email, so an operator decides. All others are looked up again. */
  private async released(tx: Tx): Promise<void> {
    await tx.$executeRaw`
      UPDATE people SET checked_absent_at = NULL WHERE platform_user_id IS NULL AND checked_absent_at IS NOT NULL`;
    // The open create outlives retries, writes and the deletion, as a review does not.
    await tx.$executeRaw`
      UPDATE people SET review = 'restored-unknown', state = 'needs-review', error_code = 'restored-unknown',
        fault = NULL, step = NULL, due_at = NULL, updated_at = clock_timestamp(), call_id = NULL, call_operation = NULL,
        call_version = NULL, call_look_up_at = NULL, unsettled_call = ${RESTORED_CALL}::uuid,
        unsettled_operation = 'createClient', unsettled_email = NULL, unsettled_profile = NULL,
        unsettled_look_up_at = clock_timestamp()
      WHERE kind = 'client' AND wanted AND platform_user_id IS NULL AND email_fingerprint IS NULL`;
  }
}
