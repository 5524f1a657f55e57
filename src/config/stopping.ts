import { Injectable } from '@nestjs/common';
import type { Env } from './env.js';

/** Milliseconds beyond a call's timeout that a shutdown may take: to store what the last call came to, and to close. */
const AFTER_LAST_CALL_MS = 10_000;

/**
 * Milliseconds that a shutdown may take before the process leaves, since a queue's own close never times out: whatever
 * call is under way may take its whole time, for its answer is known here alone.
 */
export function shutdownDeadlineMs({ PLATFORM_TIMEOUT_SECONDS }: Pick<Env, 'PLATFORM_TIMEOUT_SECONDS'>): number {
  return PLATFORM_TIMEOUT_SECONDS * 1_000 + AFTER_LAST_CALL_MS;
}

/** Whether this process is about to end: from that moment on nothing new begins, and what is under way ends. */
@Injectable()
export class Stopping {
  #begun = false;

  get begun(): boolean {
    return this.#begun;
  }

  begin(): void {
    this.#begun = true;
  }
}
