import { setTimeout as delay } from 'node:timers/promises';
import { type Job, Worker } from 'bullmq';
import { isRetried } from '../../database/prisma.service.js';
import { isDatabaseUnavailable } from '../../errors/database-fault.js';

/**
 * How long a worker waits after a failed fetch, or a failed wait for a job. BullMQ would fetch again in the same turn of the
 * event loop, and wait again after 0.1 s.
 */
const FAILED_FETCH_MS = 1_000;

/**
 * How long a worker waits after several fetches without a job, one right after the other. On PostgreSQL, a worker with a free
 * place fetches thousands of times a second while jobs wait and their queue runs as many as it may (`setGlobalConcurrency`).
 */
const EMPTY_FETCH_MS = 100;
const EMPTY_FETCHES = 5;

/** How often the end of a job is stored again, and the wait between two attempts, in milliseconds. */
const ATTEMPTS = 20;
const RETRY_MS = 150;

/** How long a worker without a job in progress takes to close at most. Without its store, BullMQ's never does. */
const CLOSE_MS = 5_000;

/** Time for a worker that did not close to drop its connections. */
const DISCONNECT_MS = 500;

/** A worker of BullMQ that neither spins nor hangs while its store fails, and that loses no end of a job to a deadlock. */
export class CalmWorker extends Worker {
  private readonly inProgress = new Set<Promise<unknown>>();
  private ending: Promise<void> | undefined;
  private emptyFetches = 0;
  private emptyAtMs = Number.NEGATIVE_INFINITY;

  /** Listens for errors, which BullMQ would print: a store that is away fails before the processor listens. */
  protected override createBackend(): void {
    super.createBackend();
    this.on('error', () => undefined);
  }

  /** @param milliseconds undefined after a failed wait for a job */
  override delay(...[milliseconds = FAILED_FETCH_MS, ...rest]: Parameters<Worker['delay']>): Promise<void> {
    return super.delay(milliseconds, ...rest);
  }

  protected override async moveToActive(...args: Parameters<Worker['moveToActive']>) {
    try {
      const job = await super.moveToActive(...args);
      if (!job) await this.rest();
      return job;
    } catch (error) {
      if (!this.closing) await delay(FAILED_FETCH_MS);
      throw error;
    }
  }

  private async rest(): Promise<void> {
    const isNext = performance.now() - this.emptyAtMs < EMPTY_FETCH_MS;
    this.emptyFetches = isNext ? this.emptyFetches + 1 : 1;
    if (this.emptyFetches > EMPTY_FETCHES && !this.closing) await delay(EMPTY_FETCH_MS);
    this.emptyAtMs = performance.now();
  }

  protected override callProcessJob(...args: Parameters<Worker['callProcessJob']>) {
    this.emptyFetches = 0;
    const work = super.callProcessJob(...args);
    const ended = work.catch(() => undefined).finally(() => this.inProgress.delete(ended));
    this.inProgress.add(ended);
    return work;
  }

  protected override handleCompleted(...args: Parameters<Worker['handleCompleted']>) {
    return stored(() => super.handleCompleted(...args));
  }

  protected override handleFailed(...args: Parameters<Worker['handleFailed']>) {
    return stored(() => super.handleFailed(...args));
  }

  /** Waits for the jobs in progress, then at most 5.5 s for the store. */
  override close(force = false): Promise<void> {
    this.ending ??= this.end(force);
    return this.ending;
  }

  private async end(force: boolean): Promise<void> {
    const closed = super.close(force);
    await Promise.all(this.inProgress);
    await Promise.race([closed, delay(CLOSE_MS, undefined, { ref: false })]);
    if (this.closed) return;
    this.emit('error', new Error('a worker could not tell the store that it closes'));
    await Promise.race([this.disconnect().catch(() => undefined), delay(DISCONNECT_MS)]);
  }
}

/** Stores the end of a job. On PostgreSQL it may meet a deadlock; a store that restarts is back within seconds. */
async function stored(end: () => Promise<Job>): Promise<Job> {
  for (let attempt = 1; ; attempt += 1) {
    try {
      return await end();
    } catch (error) {
      if (attempt === ATTEMPTS || !(isRetried(error) || isDatabaseUnavailable(error))) throw error;
      await delay(RETRY_MS);
    }
  }
}
