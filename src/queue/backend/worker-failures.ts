import { Logger } from '@nestjs/common';
import type { Worker } from 'bullmq';
import { QUEUE_STORE } from './queue-names.js';

/** Milliseconds between two log lines about the same worker: its store may be away for long. */
const QUIET_MS = 10_000;

/**
 * Logs what a worker could not do, at most every few seconds. Nothing is lost by a failed job: the row that it was
 * about still wants work, and the poller notifies again. An `error` listener must exist, or Node ends the process.
 */
export function logFailures(worker: Worker): void {
  const log = new Logger(`Worker ${worker.name}`);
  let quietUntil = 0;
  const complain = (what: string, error: Error) => {
    if (performance.now() < quietUntil) return;
    quietUntil = performance.now() + QUIET_MS;
    const { code } = error as { code?: string };
    log.warn({ msg: what, error: error.name, code, at: error.stack?.split('\n').slice(1, 6) });
  };
  worker.on('failed', (_job, error) => complain('an activation failed; the poller notifies again', error));
  worker.on('error', (error) => complain(`the queue’s store (${QUEUE_STORE}) is away or failing`, error));
}
