import { setTimeout as delay } from 'node:timers/promises';
import { Injectable, Logger, type OnModuleDestroy } from '@nestjs/common';
import { Clock } from '../../config/clock.js';
import { errorTrace } from '../../http/problem/error-trace.js';
import { Problem } from '../../http/problem/problem.js';
import { Metrics } from '../../http/server/metrics.js';
import { MOST_FAILURES, pauseMs, sourceOf } from './attempt-rules.js';
import { FailedAttemptsRepository, type Failures, type Suspect } from './failed-attempts.repository.js';

/** Suspects that one process keeps in memory; failures of others are counted together. */
const MOST_SUSPECTS = 10_000;
const OTHERS: Suspect = { kind: 'source', name: 'others' };

/** Keys that are looked up at once for sources that are locked out, but for those that were taken lately. */
const MOST_LOOK_UPS = 4;

/** Answers that wait at once. */
const MOST_WAITING = 200;

/** Milliseconds between two writes of what those who are locked out try. */
const FLUSH_MS = 1_000;

/** Milliseconds between two sweeps. */
const SWEEP_MS = 15_000;

/**
 * Failed authentication: counted by source and by the prefix of the key, over all processes; the answers become slower,
 * then 429. Only requests with a wrong key are refused, so that nobody can lock out whoever has a good one. What comes
 * while a write is under way is counted by the next, so that a flood takes one statement at a time.
 */
@Injectable()
export class FailedAttempts implements OnModuleDestroy {
  private readonly log = new Logger(FailedAttempts.name);
  private readonly total;
  /** What is not written yet, by kind and name. */
  private counted = new Map<string, Suspect & { times: number }>();
  /** Until when suspects are locked out, by this process's monotonic clock. */
  private readonly locked = new Map<string, number>();
  private writing: Promise<unknown> = Promise.resolve();
  private next: Promise<ReadonlyMap<string, Failures>> | undefined;
  private waiting = 0;
  private lookingUp = 0;
  private flushTimer: NodeJS.Timeout | undefined;
  private readonly sweeping: NodeJS.Timeout;

  constructor(
    private readonly repository: FailedAttemptsRepository,
    private readonly clock: Clock,
    metrics: Metrics,
  ) {
    this.total = metrics.counter(
      'authentication_failures_total',
      'Requests with a key or a browser session that is not taken',
    );
    this.sweeping = setInterval(() => void this.sweep(), SWEEP_MS).unref();
  }

  async onModuleDestroy(): Promise<void> {
    clearInterval(this.sweeping);
    clearTimeout(this.flushTimer);
    await this.flush();
  }

  /**
   * Looks a key, or a session, up. A source that is locked out may have a good one still, so that is done for it, too, within bounds.
   *
   * @param wasTaken whether it was taken lately: it is looked up whatever else its source sends
   * @throws {Problem} 429 `too-many-failures`
   */
  async lookUp<T>(ip: string, wasTaken: () => boolean, find: () => Promise<T>): Promise<T> {
    const source: Suspect = { kind: 'source', name: sourceOf(ip) };
    if (this.secondsLocked([source]) <= 0 || wasTaken()) return find();
    if (this.lookingUp >= MOST_LOOK_UPS) this.refuseLocked([this.count(source)]);
    this.lookingUp += 1;
    try {
      return await find();
    } finally {
      this.lookingUp -= 1;
    }
  }

  /**
   * Counts a request with a wrong key, or with a session that is none, and refuses it: after a while when there were
   * several.
   *
   * @param prefix of the key, if it has the form of one
   * @throws {Problem} the refusal, or 429 `too-many-failures`
   */
  async refuse(ip: string, prefix: string | undefined, refusal: Problem): Promise<never> {
    this.total.inc();
    const suspects: Suspect[] = [{ kind: 'source', name: sourceOf(ip) }];
    if (prefix !== undefined) suspects.push({ kind: 'key', name: prefix });
    const counted = suspects.map((suspect) => this.count(suspect));
    this.refuseLocked(counted);
    const known = await this.flush();
    this.refuseLocked(counted);
    await this.pause(Math.max(...counted.map((suspect) => known.get(idOf(suspect))?.failures ?? 0)));
    throw refusal;
  }

  /** Writes what was counted; when that fails it is kept for the next time. @returns what is known by then */
  flush(): Promise<ReadonlyMap<string, Failures>> {
    this.next ??= this.writing.then(() => {
      this.next = undefined;
      const written = this.write();
      this.writing = written;
      return written;
    });
    return this.next;
  }

  /** Tells the audit trail of failures that are a minute old. */
  async sweep(): Promise<void> {
    await this.repository.tell().catch((error: unknown) => {
      this.log.warn({ msg: 'failed authentication could not be recorded yet', ...errorTrace(error) });
    });
  }

  private async write(): Promise<ReadonlyMap<string, Failures>> {
    const counted = [...this.counted.values()];
    this.counted = new Map();
    if (counted.length === 0) return new Map();
    try {
      const known = await this.repository.count(counted);
      for (const suspect of known) if (suspect.failures >= MOST_FAILURES) this.lock(suspect);
      return new Map(known.map((suspect) => [idOf(suspect), suspect]));
    } catch (error) {
      for (const suspect of counted) this.count(suspect, suspect.times);
      this.log.warn({ msg: 'failed authentication could not be counted yet', ...errorTrace(error) });
      return new Map();
    }
  }

  private count(suspect: Suspect, times = 1): Suspect {
    const isNew = !this.counted.has(idOf(suspect));
    const { kind, name } = isNew && this.counted.size >= MOST_SUSPECTS ? OTHERS : suspect;
    const id = idOf({ kind, name });
    this.counted.set(id, { kind, name, times: (this.counted.get(id)?.times ?? 0) + times });
    return { kind, name };
  }

  private lock(suspect: Failures): void {
    const [oldest] = this.locked.keys();
    if (this.locked.size >= MOST_SUSPECTS && oldest !== undefined) this.locked.delete(oldest);
    this.locked.set(idOf(suspect), this.clock.monotonicMs() + suspect.secondsLeft * 1_000);
  }

  /** @throws {Problem} 429 `too-many-failures`; what was counted is written a little later */
  private refuseLocked(suspects: readonly Suspect[]): void {
    const seconds = this.secondsLocked(suspects);
    if (seconds <= 0) return;
    this.flushTimer ??= setTimeout(() => {
      this.flushTimer = undefined;
      void this.flush();
    }, FLUSH_MS).unref();
    const detail =
      'Too many requests came from this address, or with the beginning of this key, whose key or session is not taken; send a good key, or wait.';
    throw new Problem(429, 'too-many-failures', detail, { retryAfterSeconds: seconds });
  }

  private secondsLocked(suspects: readonly Suspect[]): number {
    const now = this.clock.monotonicMs();
    return Math.max(...suspects.map((suspect) => (this.locked.get(idOf(suspect)) ?? now) - now)) / 1_000;
  }

  private async pause(failures: number): Promise<void> {
    const ms = pauseMs(failures);
    if (ms === 0 || this.waiting >= MOST_WAITING) return;
    this.waiting += 1;
    await delay(ms, undefined, { ref: false });
    this.waiting -= 1;
  }
}

const idOf = ({ kind, name }: Suspect): string => `${kind} ${name}`;
