import { setTimeout as delay } from 'node:timers/promises';

const POLL_MS = 20;

/** Milliseconds after which a wait is a hang. It ends the hang and judges nothing: a slow machine is far below it. */
const HANG_MS = 180_000;

/**
 * Waits until `look` gives something truthy, and returns that.
 *
 * @param what says in the failure what was waited for
 * @param hangMs milliseconds after which it is a hang, where three minutes may be too few
 * @throws Error when they pass first
 */
export async function until<T>(
  what: string,
  look: () => T | Promise<T>,
  hangMs: number = HANG_MS,
): Promise<NonNullable<T>> {
  const giveUpAt = performance.now() + hangMs;
  for (;;) {
    const found = await look();
    if (found) return found;
    if (performance.now() > giveUpAt) throw new Error(`Waited ${hangMs / 1_000} s in vain until ${what}`);
    await delay(POLL_MS);
  }
}
