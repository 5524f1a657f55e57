import { setTimeout as delay } from 'node:timers/promises';

const POLL_MS = 20;

/** How long a wait may take before it counts as a hang. Far above what a slow machine needs. */
export const HANG_MS = 600_000;

/**
 * Polls `look` until it returns something truthy, and returns that.
 *
 * @param what completes the error "Waited … until"
 * @throws Error after ten minutes
 */
export async function until<T>(what: string, look: () => T | Promise<T>): Promise<NonNullable<T>> {
  const giveUpAt = performance.now() + HANG_MS;
  for (;;) {
    const found = await look();
    if (found) return found;
    if (performance.now() > giveUpAt) throw new Error(`Waited ${HANG_MS / 1_000} s until ${what}, without success`);
    await delay(POLL_MS);
  }
}
