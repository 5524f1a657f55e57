import type { INestApplicationContext } from '@nestjs/common';
import { AuditHeads } from '../../src/audit/audit-heads.js';
import { AuditLinker } from '../../src/audit/audit-linker.js';
import { ImportsRepository } from '../../src/imports/model/imports.repository.js';
import { ImportSteps } from '../../src/imports/run/import-steps.service.js';
import { Retention } from '../../src/operations/retention.js';
import { DUE_ROWS, Feeder } from '../../src/queue/work/feeder.js';
import type { MemoryStore } from '../memory-queue/memory-store.js';

/**
 * All background work of the service. Each function works until none of its kind is due.
 *
 * @param step moves time by the smallest step, because a call decided in the same millisecond as a change counts as
 *   outdated by it
 * @param store of the queues whose jobs name rows
 */
export function workOf(app: INestApplicationContext, step: () => Promise<unknown>, store: MemoryStore) {
  const feeder = app.get(Feeder, { strict: false });
  /** Adds due rows, and works until no job may start now. The limiter of people lets others start later. */
  const jobs = async () => {
    // A row may have changed in this millisecond.
    await step();
    await feeder.round();
    await store.runDue();
  };
  const imports = app.get(ImportsRepository, { strict: false });
  const steps = app.get(ImportSteps, { strict: false });
  const heads = app.get(AuditHeads, { strict: false });
  const linker = app.get(AuditLinker, { strict: false });
  const retention = app.get(Retention, { strict: false });
  return {
    /** Handles webhooks, and nothing that follows from them. */
    async inbox() {
      await step();
      await feeder.round();
      await store.runDue('webhooks');
    },
    /** Sends requests for sessions, and fetches sessions. */
    async sessions() {
      await step();
      await feeder.round();
      await store.runDue('sessions');
    },
    async compliance() {
      await step();
      await feeder.round();
      await store.runDue('compliance');
    },
    people: jobs,
    /** Plans and applies imports, without a call to the platform. */
    async imports() {
      for (let hasMore = true; hasMore; ) {
        hasMore = false;
        for (const { id } of await imports.due()) hasMore = (await steps.next(id)) || hasMore;
      }
    },
    jobs,
    /** Adds due rows, and works on the next job only, if one may start. */
    async nextJob() {
      await feeder.round();
      await store.startNext();
    },
    links: () => linker.linkAll(),
    heads: () => heads.publish(),
    async retention() {
      await retention.dropOld();
      await linker.cut();
    },
  };
}

export type Work = ReturnType<typeof workOf>;

/** What the world does in place of the work that the service repeats. Work that is missing here fails the start. */
export const REPEATED_WORK: Readonly<Record<string, keyof Work>> = {
  [DUE_ROWS]: 'jobs',
  'audit-links': 'links',
  'audit-heads': 'heads',
  'retention-audit': 'retention',
  retention: 'retention',
};
