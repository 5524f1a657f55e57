import { Logger } from '@nestjs/common';
import { type Job, type Processor, Queue, type QueueOptions, Worker, type WorkerOptions } from 'bullmq';
import { within } from '../../config/within.js';
import { errorTrace } from '../../http/problem/error-trace.js';
import { QUEUE_STORE } from './queue-names.js';

/** Milliseconds that BullMQ's own close may take once no work is under way; they close one after the other. */
const CLOSE_MS = 300;

/** Milliseconds between two log lines about the same worker: its store may be away for long. */
const QUIET_MS = 10_000;

/**
 * BullMQ's worker, whose `close` ends also when its store is away: BullMQ waits for a connection there, without a
 * bound. Work under way is always waited for.
 */
export class BoundedWorker extends Worker {
  private readonly underWay: Set<Promise<unknown>>;
  private boundedClose: Promise<void> | undefined;

  constructor(name: string, process: Processor, options: WorkerOptions) {
    const underWay = new Set<Promise<unknown>>();
    const follow = (job: Job, ...rest: [token?: string, signal?: AbortSignal]) => {
      const work = Promise.resolve(process(job, ...rest))
        .catch((error: unknown) => {
          throw withoutMessage(error);
        })
        .finally(() => underWay.delete(work));
      underWay.add(work);
      return work;
    };
    super(name, follow, { ...options, connection: workerConnection(options.connection) });
    this.underWay = underWay;
    logFailures(this);
  }

  override close(force = false): Promise<void> {
    this.boundedClose ??= this.closeWithin(super.close(force));
    return this.boundedClose;
  }

  private async closeWithin(closing: Promise<void>): Promise<void> {
    const allDone = Promise.allSettled(this.underWay);
    await Promise.race([closing, allDone.then(() => within(CLOSE_MS, closing, () => undefined))]);
  }
}

/**
 * A worker's connection out of the producer's, which Nest gives to both: a worker waits until its Redis is back. Without
 * a queue of commands each of them fails at once, which BullMQ's main loop does not take for a lost connection: it asked
 * again without a pause, and nothing else ran in the process.
 */
function workerConnection(connection: WorkerOptions['connection']): WorkerOptions['connection'] {
  const isProducers = 'enableOfflineQueue' in connection;
  return isProducers ? ({ ...connection, enableOfflineQueue: true } as typeof connection) : connection;
}

/** What the queue may hold of an activation's error: its kind, code and place. A message may quote a row. */
function withoutMessage(error: unknown): Error {
  const { error: kind = 'unknown', code, at } = errorTrace(error) as { error?: string; code?: string; at?: string[] };
  const fault = Object.assign(new Error(code === undefined ? kind : `${kind} ${code}`), { name: kind, code });
  fault.stack = [`${kind}:`, ...(at ?? [])].join('\n');
  return fault;
}

/**
 * Logs failures, at most one every few seconds. A failed job loses nothing: the row that it was about is still due, and
 * the poller notifies again. An `error` listener must exist, or Node ends the process.
 */
function logFailures(worker: Worker): void {
  const log = new Logger(`Worker ${worker.name}`);
  let quietUntil = 0;
  const warn = (msg: string, error: Error) => {
    if (performance.now() < quietUntil) return;
    quietUntil = performance.now() + QUIET_MS;
    const { code } = error as { code?: string };
    log.warn({ msg, error: error.name, code, at: error.stack?.split('\n').slice(1, 6) });
  };
  worker.on('failed', (_job, error) => warn('an activation failed; the poller notifies again', error));
  worker.on('error', (error) => warn(`the queue’s store (${QUEUE_STORE}) is away or failing`, error));
}

/** BullMQ's queue, whose `close` succeeds also when its store is away: Nest would print a stack trace for each queue. */
export class BoundedQueue extends Queue {
  constructor(name: string, options: QueueOptions) {
    super(name, options);
    // BullMQ prints whole connections of errors without a listener; the notifier's, which logs them, comes later.
    this.on('error', () => undefined);
  }

  override async close(): Promise<void> {
    const closed = super.close().then(() => true);
    if (await within(CLOSE_MS, closed, () => false).catch(() => false)) return;
    // Stops the attempts to connect again. Not awaited: it waits for the end of a connection that there is none of.
    this.disconnect().catch(() => undefined);
  }
}
