import { type Job, type Processor, Worker, type WorkerOptions } from 'bullmq';
import { within } from '../../config/within.js';
import { errorTrace } from '../../http/problem/error-trace.js';
import { workerConnection } from './backend.js';
import { logFailures } from './worker-failures.js';

/** Milliseconds that BullMQ's own goodbye may take once no work is under way; workers close one after the other. */
const GOODBYE_MS = 300;

/**
 * BullMQ's worker, whose `close` comes to an end also when its store is away: BullMQ waits for a connection there,
 * without a bound. Work under way is always waited for.
 */
export class BoundedWorker extends Worker {
  private readonly underWay: Set<Promise<unknown>>;
  private goodbye: Promise<void> | undefined;

  constructor(name: string, process: Processor, options: WorkerOptions) {
    const underWay = new Set<Promise<unknown>>();
    const follow = (job: Job, ...rest: [token?: string, signal?: AbortSignal]) => {
      const work = Promise.resolve(process(job, ...rest))
        .catch((error: unknown) => {
          throw keepable(error);
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
    this.goodbye ??= this.closeWithin(super.close(force));
    return this.goodbye;
  }

  private async closeWithin(closing: Promise<void>): Promise<void> {
    const allDone = Promise.allSettled(this.underWay);
    await Promise.race([closing, allDone.then(() => within(GOODBYE_MS, closing, () => undefined))]);
  }
}

/** What the queue may keep of an activation's fault: its kind, code and place. A message may quote a row. */
function keepable(error: unknown): Error {
  const { error: kind = 'unknown', code, at } = errorTrace(error) as { error?: string; code?: string; at?: string[] };
  const fault = Object.assign(new Error(code === undefined ? kind : `${kind} ${code}`), { name: kind, code });
  fault.stack = [`${kind}:`, ...(at ?? [])].join('\n');
  return fault;
}
