import { Injectable, Logger, type OnApplicationBootstrap, type OnModuleDestroy } from '@nestjs/common';
import { Clock } from '../../config/clock.js';
import { Env } from '../../config/env.js';
import { Stopping } from '../../config/stopping.js';
import { Database } from '../../database/database.js';
import { isDatabaseUnavailable } from '../../errors/database-fault.js';
import { codeOf } from '../../errors/error-code.js';
import { errorTrace } from '../../errors/error-trace.js';

/** Adds a value to a statement's parameters. @returns its placeholder */
export type Bind = (value: unknown) => string;

/**
 * SQL expression for the time when the next row of a poll is due, or null if no row is. It must read only the head of an
 * index, because every round evaluates it. Null instead of SQL means that the poll has nothing to do for now.
 */
export type NextDue = (bind: Bind) => string | null;

interface Poll {
  readonly name: string;
  readonly work: () => Promise<void> | void;
  /** Null for a poll at intervals. */
  readonly nextDue: NextDue | null;
  /** Minimum time between two runs. */
  readonly everyMs: number;
  /** The earliest time of the next run, in monotonic milliseconds. */
  nextAtMs: number;
  running?: Promise<void>;
  /** True if the poll was asked for during its run, which may have looked too early. */
  isWantedAgain?: boolean;
}

/** Maximum time between two rounds. A row whose notification was lost waits at most as long. */
const MAX_SLEEP_MS = 5_000;

/** Minimum time between two rounds. */
const MIN_SLEEP_MS = 100;

/** Minimum time between two runs for due rows. Otherwise a row that cannot be claimed would keep the process busy. */
export const POLL_INTERVAL_MS = 1_000;

/** Minimum time between two log lines about the same poll. */
const QUIET_MS = 30_000;

/**
 * Finds due work without the queue, because the queue may lose notifications. One statement per round asks for the next
 * due time of every poll. The poller runs the due ones, then sleeps until the next row is due, at most `MAX_SLEEP_MS`.
 * Runs of one poll never overlap within a process.
 */
@Injectable()
export class Poller implements OnApplicationBootstrap, OnModuleDestroy {
  private readonly log = new Logger(Poller.name);
  private readonly polls: Poll[] = [];
  private isStarted = false;
  private round: Promise<void> | undefined;
  /** When the next round starts, in monotonic milliseconds. */
  private wakeAtMs = Number.POSITIVE_INFINITY;
  private cancelTimer = () => {};
  /** The end of the time without log lines about each poll. */
  private readonly quietUntilMs = new Map<string, number>();

  constructor(
    private readonly env: Env,
    private readonly database: Database,
    private readonly clock: Clock,
    private readonly stopping: Stopping,
  ) {}

  /** Declares a poll that runs when a row is due. Call it from a feature's `onModuleInit`. */
  whenDue(name: string, nextDue: NextDue, work: Poll['work']): void {
    this.polls.push({ name, work, nextDue, everyMs: POLL_INTERVAL_MS, nextAtMs: 0 });
  }

  /** Declares a poll at intervals, of a second or more, for work without due times. */
  every(everyMs: number, name: string, work: Poll['work']): void {
    this.polls.push({ name, work, nextDue: null, everyMs, nextAtMs: this.clock.monotonicMs() + everyMs });
  }

  /** Starts the next round in `ms` milliseconds, unless it starts earlier anyway. */
  wakeIn(ms: number): void {
    const atMs = this.clock.monotonicMs() + Math.max(ms, MIN_SLEEP_MS);
    if (!this.isStarted || atMs >= this.wakeAtMs) return;
    this.wakeAtMs = atMs;
    if (!this.round) this.setTimer();
  }

  /** Runs a poll now, or once its present run has ended, without the minimum time between two runs. */
  runNow(name: string): void {
    const poll = this.polls.find((each) => each.name === name);
    if (!poll || !this.isStarted) return;
    if (poll.running) poll.isWantedAgain = true;
    else this.run(poll);
  }

  onApplicationBootstrap(): void {
    if (!this.env.hasRole('worker')) return;
    this.isStarted = true;
    this.wakeIn(MIN_SLEEP_MS);
  }

  async onModuleDestroy(): Promise<void> {
    this.isStarted = false;
    this.cancelTimer();
    await this.round;
    await Promise.all(this.polls.map((poll) => poll.running));
  }

  private setTimer(): void {
    this.cancelTimer();
    this.cancelTimer = this.clock.after(Math.max(0, this.wakeAtMs - this.clock.monotonicMs()), () => {
      this.wakeAtMs = Number.POSITIVE_INFINITY;
      this.round = this.runDue().finally(() => {
        this.round = undefined;
        this.wakeIn(MAX_SLEEP_MS);
        if (this.isStarted) this.setTimer();
      });
    });
  }

  /** Runs the due polls, and plans the next round for the first one that will be due. */
  private async runDue(): Promise<void> {
    let rowWaits: [Poll, number][] = [];
    try {
      rowWaits = await this.waitsForRows();
    } catch (error) {
      this.warn('due rows', error); // and runs every poll, because each may find out itself
    }
    if (this.stopping.isShuttingDown || !this.isStarted) return;
    const waitsOfRows = new Map(rowWaits);
    for (const poll of this.polls) {
      if (poll.running) continue;
      const waitMs = Math.max(waitsOfRows.get(poll) ?? 0, poll.nextAtMs - this.clock.monotonicMs());
      if (waitMs <= 0) this.run(poll);
      else this.wakeIn(waitMs);
    }
  }

  /** Milliseconds until a row of each poll is due; infinite without one. */
  protected async waitsForRows(): Promise<[Poll, number][]> {
    const values: unknown[] = [];
    const bind: Bind = (value) => `$${values.push(value)}`;
    const polls = this.polls.filter(({ nextDue }) => nextDue);
    if (polls.length === 0) return [];
    const waits = polls.map(({ nextDue }) => {
      const sql = nextDue?.(bind) ?? null;
      return sql === null ? 'NULL' : `extract(epoch FROM ${sql} - clock_timestamp()) * 1000`;
    });
    const { rows } = await this.database.pool.query<{ waits: (number | null)[] }>(
      `SELECT ARRAY[${waits.join(', ')}]::float8[] AS waits`,
      values,
    );
    return polls.map((poll, at) => [poll, rows[0]?.waits[at] ?? Number.POSITIVE_INFINITY]);
  }

  private run(poll: Poll): void {
    const work = async () => poll.work();
    poll.running = work()
      .catch((error: unknown) => this.warn(poll.name, error))
      .finally(() => {
        delete poll.running;
        poll.nextAtMs = this.clock.monotonicMs() + poll.everyMs;
        this.wakeIn(poll.everyMs);
        if (!poll.isWantedAgain) return;
        poll.isWantedAgain = false;
        this.runNow(poll.name);
      });
  }

  /** Logs at most one failure of each poll in `QUIET_MS`. While PostgreSQL is unavailable, all polls count as one. */
  private warn(poll: string, error: unknown): void {
    const nowMs = this.clock.monotonicMs();
    const isUnavailable = isDatabaseUnavailable(error);
    const about = isUnavailable ? 'database' : poll;
    if (nowMs < (this.quietUntilMs.get(about) ?? nowMs)) return;
    this.quietUntilMs.set(about, nowMs + QUIET_MS);
    if (isUnavailable)
      this.log.warn({ msg: 'PostgreSQL is unavailable, so polls fail and are retried', code: codeOf(error) });
    else this.log.warn({ msg: 'a poll failed and is retried', poll, ...errorTrace(error) });
  }
}
