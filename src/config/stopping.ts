import { Injectable } from '@nestjs/common';
import type { Env } from './env.js';

/** Milliseconds beyond a call's timeout that a shutdown may take: to store what the last call came to, and to close. */
const AFTER_LAST_CALL_MS = 10_000;

/**
 * Milliseconds that a shutdown may take before the process leaves, since a queue's own close never times out: whatever
 * call is under way may take its whole time, for its answer is known here alone.
 */
export function shutdownDeadlineMs({
  PLATFORM_TIMEOUT_SECONDS: callSeconds,
  SHUTDOWN_DELAY_SECONDS: delaySeconds,
}: Pick<Env, 'PLATFORM_TIMEOUT_SECONDS' | 'SHUTDOWN_DELAY_SECONDS'>): number {
  return (delaySeconds + callSeconds) * 1_000 + AFTER_LAST_CALL_MS;
}

/** Whether this process is about to end. */
@Injectable()
export class Stopping {
  #announced = false;
  #begun = false;

  /** Whether load balancers are told to send nothing more; what they still send is answered as ever. */
  get announced(): boolean {
    return this.#announced;
  }

  /** Nothing new begins, and what is under way ends. */
  get begun(): boolean {
    return this.#begun;
  }

  announce(): void {
    this.#announced = true;
  }

  begin(): void {
    this.announce();
    this.#begun = true;
  }
}
