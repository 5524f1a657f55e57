import { Injectable } from '@nestjs/common';
import type { Env } from './env.js';

/** Time beyond a call's timeout that a shutdown may take, to store the outcome of the last call and to close. */
const AFTER_LAST_CALL_MS = 10_000;

/**
 * How long a shutdown may take before the process exits, because closing a queue never times out. A call in flight may
 * use its whole timeout, because only this process will know its answer.
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
  /** True once load balancers are told to send nothing more; requests are still answered as usual. */
  announced = false;
  /** True once no new work begins and the work in progress ends. */
  begun = false;

  announce(): void {
    this.announced = true;
  }

  begin(): void {
    this.announced = true;
    this.begun = true;
  }
}
