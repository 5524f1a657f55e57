import { Injectable, Logger, type OnModuleInit } from '@nestjs/common';
import type { PoolClient } from 'pg';
import { Clock } from '../../config/clock.js';
import { Database } from '../../database/database.js';
import { IMPORT_QUEUE } from '../../queue/backend/queue-names.js';
import { Poller } from '../../queue/notifier/poller.js';
import { QueueNotifier } from '../../queue/notifier/queue-notifier.js';
import { COUNT_EVERY_MS } from '../model/import-eta.js';
import { isFirst } from '../model/import-lock.js';
import type { ImportRecord, ImportState } from '../model/import-types.js';
import { ImportsRepository } from '../model/imports.repository.js';
import { RawRowsRepository } from '../model/raw-rows.repository.js';
import { CancelRepository } from './cancel.repository.js';
import { ImportPreparation } from './import-preparation.service.js';
import { ImportSteering } from './import-steering.service.js';
import { OutcomesRepository } from './outcomes.repository.js';

/** Milliseconds without a sign of life after which an upload counts as broken off. */
const SILENT_MS = 60_000;

/** Milliseconds between two looks for those. */
const LISTEN_MS = 5_000;

/** A count is followed by a rest of so many times what it took. */
const COUNT_REST = 10;

/** Why an import failed whose upload did not come to its end. */
export const INTERRUPTED = {
  code: 'interrupted',
  detail: 'The upload broke off before its end; nothing of it was imported: send it again.',
};

/** What such an import wanted and did not get is taken back. */
function isTakenBack(state: ImportState): boolean {
  return state === 'cancelled' || state === 'failed';
}

/** The steps of an import once it was read: plan, apply, count outcomes, finish. Any worker may take the next step. */
@Injectable()
export class ImportSteps implements OnModuleInit {
  private readonly log = new Logger(ImportSteps.name);
  private readonly countAgainAt = new Map<string, number>();

  constructor(
    private readonly database: Database,
    private readonly imports: ImportsRepository,
    private readonly preparation: ImportPreparation,
    private readonly steering: ImportSteering,
    private readonly tallies: OutcomesRepository,
    private readonly cancelling: CancelRepository,
    private readonly cells: RawRowsRepository,
    private readonly notifier: QueueNotifier,
    private readonly poller: Poller,
    private readonly clock: Clock,
  ) {}

  onModuleInit(): void {
    this.poller.every(COUNT_EVERY_MS, 'imports', () => this.prepareAll());
    this.poller.every(COUNT_EVERY_MS, 'steered imports', () => this.steering.followAll());
    this.poller.every(COUNT_EVERY_MS, 'import outcomes', () => this.countAll());
    this.poller.every(LISTEN_MS, 'broken uploads', () => this.failStale());
  }

  /** Gives up imports whose reader died with its process. */
  private async failStale(): Promise<void> {
    for (const id of await this.imports.silent(SILENT_MS)) {
      await this.database.transaction((tx) => this.imports.failReading(tx, id, INTERRUPTED), 'bulk');
    }
  }

  /** Plans and applies whatever waits for it, in order. */
  prepareAll(): Promise<void> {
    return this.preparation.prepareAll();
  }

  /** Counts the outcomes of every import that is under way, and finishes those without pending rows. */
  async countAll(): Promise<void> {
    const faults: unknown[] = [];
    await this.steering.followAll().catch((error: unknown) => faults.push(error));
    for (const { id, state } of await this.imports.underWay()) {
      // One that can't be counted keeps none of the others from it.
      await this.countInTime(id, state).catch((error: unknown) => faults.push(error));
    }
    if (faults.length > 0) throw faults[0];
  }

  private async countInTime(id: string, state: ImportState): Promise<void> {
    const startedAt = this.clock.monotonicMs();
    if (startedAt < (this.countAgainAt.get(id) ?? 0)) return;
    const isLarge = await this.count(id, state);
    const now = this.clock.monotonicMs();
    // Counting a large import takes its time: never more than a small share of it.
    if (isLarge) this.countAgainAt.set(id, now + (now - startedAt) * COUNT_REST);
    else this.countAgainAt.delete(id);
  }

  /** @returns whether as much is left to count as there was: of one that is taken back a round leaves little */
  private async count(importId: string, seen: ImportState): Promise<boolean> {
    const size = isTakenBack(seen) ? 'bulk' : 'usual'; // whoever is to be taken back may be many
    return this.database.transaction(async (tx) => {
      const record = await this.imports.lockUnderWay(tx, importId);
      if (!record || isTakenBack(record.state) !== isTakenBack(seen)) return false;
      if (record.applyWanted && record.state === 'running') return false; // nobody goes yet
      const wasPending = await this.tallies.resolveOutcomes(tx, record.id);
      const isToTakeBack = isTakenBack(record.state) && wasPending > 0 && record.steeredTo === null;
      // One that is applied at this moment may name a provider who would be taken back.
      if (isToTakeBack && (await isFirst(tx))) await this.cancelling.rollBack(tx, record.id);
      const pending = isToTakeBack ? await this.tallies.resolveOutcomes(tx, record.id) : wasPending;
      if (pending > 0 || record.applyWanted || record.steeredTo !== null) return pending === wasPending;
      await this.finish(tx, record);
      return false;
    }, size);
  }

  private async finish(tx: PoolClient, { id, state: seen }: ImportRecord): Promise<void> {
    const state = seen === 'cancelled' || seen === 'failed' ? seen : 'completed';
    if (state !== 'completed') await this.cancelling.end(tx, id);
    else if (seen === 'paused') await this.cancelling.release(tx, id);
    await this.cells.forget(tx, id, { mayBeRetried: state === 'completed' });
    await this.imports.end(tx, id, state);
    this.log.log({ msg: 'import finished', import: id, state });
  }

  /** Notifies for the imports' own queue. */
  notify(): void {
    this.notifier.notify(IMPORT_QUEUE, 'import-staged');
  }
}
