import { Logger } from '@nestjs/common';
import { type Job, type Processor, Queue, type QueueOptions, Worker, type WorkerOptions } from 'bullmq';
import { within } from '../../config/within.js';
import { errorTrace, failureCode } from '../../http/problem/error-trace.js';

/** Milliseconds that BullMQ's own close may take once no work is under way; they close one after the other. */
const CLOSE_MS = 300;

/**
 * How often an idle worker asks its store without having been woken. BullMQ's usual five seconds cost an idle process four
 * statements per queue each time. A job wakes the worker immediately (NOTIFY, BZPOPMIN), and the poller finds what gets
 * lost. Must be below the silence after which a connection to Redis is replaced (`SILENCE_MS`).
 */
const IDLE_SECONDS = 10;

/** How often to look for jobs of killed workers. They only remain as clutter, because the rows become due again. */
const STALLED_EVERY_MS = 5 * 60_000;

/** Milliseconds between two log lines about failures of the same worker. */
const QUIET_MS = 60_000;

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
        .then(
          () => undefined,
          (error: unknown) => {
            throw onlyCode(error);
          },
        )
        .finally(() => underWay.delete(work));
      underWay.add(work);
      return work;
    };
    const idle = { drainDelay: IDLE_SECONDS, stalledInterval: STALLED_EVERY_MS };
    super(name, follow, { ...idle, ...options, connection: workerConnection(options.connection) });
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

/** What the queue keeps of an activation's error: a code. Its message or its stack may quote a row. */
function onlyCode(error: unknown): Error {
  return Object.assign(new Error(failureCode(error), { cause: error }), { stack: '' });
}

/**
 * Logs failed activations, at most one a minute. A failed job loses nothing: the row that it was about is still due, and
 * the poller notifies again. What the store's connections raise, `StoreWatch` logs; without any listener from the first
 * moment on Node would end the process.
 */
function logFailures(worker: Worker): void {
  const log = new Logger(`Worker ${worker.name}`);
  let quietUntil = 0;
  worker.on('error', () => undefined);
  worker.on('failed', (_job, error) => {
    if (performance.now() < quietUntil) return;
    quietUntil = performance.now() + QUIET_MS;
    log.warn({ msg: 'an activation failed; the poller notifies again', ...errorTrace(error.cause ?? error) });
  });
}

/** BullMQ's queue, whose `close` succeeds also when its store is away: Nest would print a stack trace for each queue. */
export class BoundedQueue extends Queue {
  constructor(name: string, options: QueueOptions) {
    super(name, options);
    // BullMQ prints whole connections of errors without a listener; StoreWatch's, which logs them, comes later.
    this.on('error', () => undefined);
  }

  override async close(): Promise<void> {
    const closed = super.close().then(() => true);
    if (await within(CLOSE_MS, closed, () => false).catch(() => false)) return;
    // Stops the attempts to connect again. Not awaited: it waits for the end of a connection that there is none of.
    this.disconnect().catch(() => undefined);
  }
}
