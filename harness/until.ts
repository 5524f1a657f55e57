import { setTimeout as delay } from 'node:timers/promises';

const POLL_MS = 20;

/** Milliseconds after which a wait is a hang. It ends the hang and judges nothing: a slow machine is far below it. */
export const HANG_MS = 600_000;

/**
 * Waits until `look` gives something truthy, and returns that.
 *
 * @param what says in the failure what was waited for
 * @throws Error when ten minutes pass first
 */
export async function until<T>(what: string, look: () => T | Promise<T>): Promise<NonNullable<T>> {
  const giveUpAt = performance.now() + HANG_MS;
  for (;;) {
    const found = await look();
    if (found) return found;
    if (performance.now() > giveUpAt) throw new Error(`Waited ${HANG_MS / 1_000} s in vain until ${what}`);
    await delay(POLL_MS);
  }
}
