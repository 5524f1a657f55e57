import { setTimeout as delay } from 'node:timers/promises';
import type { INestApplication } from '@nestjs/common';
import { Audit } from '../../src/audit/audit.js';
import { AuditLinker } from '../../src/audit/audit-linker.js';
import { Vault } from '../../src/vault/vault.js';
import { ReceiverHealth } from '../../src/webhooks/receive/receiver-health.js';

/** A call that the platform holds, and the work that waits for it. */
export interface Held {
  /** Answers every held call. @returns once the world has settled */
  answer(): Promise<void>;
  /** Resolves when the work has ended, successfully or not. */
  readonly ended: Promise<void>;
}

/** Background work in progress, some of it without a caller that waits for it. */
export class RunningWork {
  private readonly tracked = new Set<Promise<void>>();
  private readonly detached = new Set<Promise<unknown>>();

  /** Waits for `work`, and lets others see that it is in progress. */
  async track(work: Promise<void>): Promise<void> {
    this.tracked.add(work);
    await work.finally(() => this.tracked.delete(work));
  }

  /** Lets work continue after its caller stops waiting. Its errors show in its effects. */
  detach(work: Promise<unknown>): Promise<unknown> {
    const ended = work.catch(() => undefined).finally(() => this.detached.delete(ended));
    this.detached.add(ended);
    return ended;
  }

  /** Resolves when all detached work has ended. */
  async detachedEnded(): Promise<void> {
    await Promise.all(this.detached);
  }

  /** Waits up to `ms` real milliseconds for tracked work. @returns false without any */
  async awaitAny(ms: number): Promise<boolean> {
    if (this.tracked.size === 0) return false;
    await Promise.race([...this.tracked, delay(ms)]);
    return true;
  }
}

/** Stores the refusals that a process has counted. Otherwise they would be recorded in the next test. */
export async function storeCounts(app: INestApplication): Promise<void> {
  await app.get(Audit, { strict: false }).onModuleDestroy();
  await app.get(ReceiverHealth, { strict: false }).flush();
}

/**
 * Clears what a process remembers forever: the damaged values and missing keys of its health, and links of the audit log.
 */
export function forgetEarlierTests(app: INestApplication): void {
  const vault = app.get(Vault, { strict: false });
  for (const name of ['damaged', 'missing']) (Reflect.get(vault, name) as Set<string>).clear();
  app.get(AuditLinker, { strict: false }).forget();
}
