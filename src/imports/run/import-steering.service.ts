import { Injectable } from '@nestjs/common';
import { Database } from '../../database/database.js';
import { USER_MANAGEMENT_QUEUE } from '../../queue/backend/queue-names.js';
import { QueueNotifier } from '../../queue/notifier/queue-notifier.js';
import { BATCH_ROWS } from '../model/batch-rows.js';
import { ApplyRepository } from './apply.repository.js';
import { SteeringRepository } from './steering.repository.js';

/**
 * Has the people of an import follow its pause, cancel or resume, in batches that commit: whoever comes after a process
 * that died goes on. A pause or a cancel stands before that: who is picked meanwhile is held back then
 * (`StoppedImportsRepository`).
 */
@Injectable()
export class ImportSteering {
  private running: Promise<void> | undefined;

  constructor(
    private readonly database: Database,
    private readonly steering: SteeringRepository,
    private readonly applying: ApplyRepository,
    private readonly notifier: QueueNotifier,
  ) {}

  /** Goes on with every import that was steered; of several calls at once one does the work. */
  followAll(): Promise<void> {
    this.running ??= this.followEach().finally(() => {
      this.running = undefined;
    });
    return this.running;
  }

  private async followEach(): Promise<void> {
    for (let open = await this.steering.open(); open.length > 0; open = await this.steering.open()) {
      for (const id of open) while (await this.followSome(id));
    }
  }

  /** @returns whether there may be more */
  private async followSome(id: string): Promise<boolean> {
    const { more, letGo } = await this.database.transaction(async (tx) => {
      const record = await this.steering.lock(tx, id);
      if (!record) return { more: false, letGo: 0 };
      const done = record.steeredTo ?? 0;
      const left = Math.max(0, (await this.steering.lastRow(tx, id)) - done);
      const rowNos = Array.from({ length: Math.min(BATCH_ROWS, left) }, (_, at) => done + 1 + at);
      const letGo = record.state === 'running' ? await this.applying.release(tx, id, rowNos) : 0;
      if (record.state !== 'running') await this.steering.hold(tx, id, rowNos);
      await this.steering.followed(tx, id, left > BATCH_ROWS ? done + BATCH_ROWS : null);
      return { more: left > BATCH_ROWS, letGo };
    }, 'bulk');
    if (letGo > 0) this.notifier.notify(USER_MANAGEMENT_QUEUE, 'import-resumed');
    return more;
  }
}
