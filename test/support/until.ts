import { setTimeout as delay } from 'node:timers/promises';

const POLL_MS = 20;

/**
 * Waits until `look` gives something truthy, and returns that.
 *
 * @param what says in the failure what was waited for
 * @throws Error when `deadlineMs` pass first
 */
export async function until<T>(what: string, look: () => T | Promise<T>, deadlineMs = 30_000): Promise<NonNullable<T>> {
  const giveUpAt = Date.now() + deadlineMs;
  for (;;) {
    const found = await look();
    if (found) return found;
    if (Date.now() > giveUpAt) throw new Error(`Waited ${deadlineMs} ms in vain until ${what}`);
    await delay(POLL_MS);
  }
}
