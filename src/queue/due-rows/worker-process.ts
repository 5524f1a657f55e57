import { randomUUID } from 'node:crypto';
import { Injectable, Logger, type OnApplicationShutdown, type OnModuleInit } from '@nestjs/common';
import type pg from 'pg';
import { Clock } from '../../config/clock.js';
import { Env } from '../../config/env.js';
import { Database, newPool } from '../../database/database.js';
import { errorTrace } from '../../http/problem/error-trace.js';

/** Milliseconds between two beats. */
const BEAT_MS = 2_000;

/** Milliseconds after which a beat counts as lost; the next one goes over a new connection. */
const BEAT_TIMEOUT_MS = 2_000;

/** Seconds for which a beat says that its process is alive; its leases hold as long. */
const ALIVE_SECONDS = 8;

/**
 * Milliseconds after its last beat for which a process may claim rows and begin calls: well before others take its rows
 * (`ALIVE_SECONDS`). Whoever was held up, by a blocked event loop or by the system, so finds out before it does harm.
 */
const MAY_WORK_MS = 5_000;

/** Hours for which a process that has ended is remembered: the newest of them shows since when none is alive. */
const REMEMBERED_HOURS = 24;

/**
 * This process as the owner of leases: it beats while it lives, by the database's clock, and all that it has leased is
 * free when it does not.
 */
@Injectable()
export class WorkerProcess implements OnModuleInit, OnApplicationShutdown {
  /** Another one after each start. */
  readonly id: string = randomUUID();
  private readonly log = new Logger(WorkerProcess.name);
  /** A connection of its own: a beat that waits behind work would declare the busiest process dead. */
  private readonly own: pg.Pool;
  private lastBeatMs = Number.NEGATIVE_INFINITY;
  private timer: NodeJS.Timeout | undefined;
  private underWay: Promise<void> | undefined;
  private stopped = false;

  constructor(
    private readonly env: Env,
    private readonly clock: Clock,
    private readonly database: Database,
  ) {
    this.own = newPool({
      connectionString: database.url,
      max: 1,
      connectionTimeoutMillis: BEAT_TIMEOUT_MS,
      query_timeout: BEAT_TIMEOUT_MS,
      statement_timeout: BEAT_TIMEOUT_MS,
      application_name: 'notebridge-heartbeat',
    });
  }

  /** False while the last beat is too old: then nothing may be claimed, and no call may begin. */
  mayWork(): boolean {
    return this.clock.monotonicMs() - this.lastBeatMs < MAY_WORK_MS;
  }

  /** Seconds since any process was last alive; null when none was for a day. */
  async secondsSinceAny(): Promise<number | null> {
    const { rows } = await this.database.pool.query<{ seconds: number }>(
      `SELECT greatest(0, $1 - extract(epoch FROM alive_until - now()))::float8 AS seconds
       FROM workers ORDER BY alive_until DESC LIMIT 1`,
      [ALIVE_SECONDS],
    );
    return rows[0]?.seconds ?? null;
  }

  async onModuleInit(): Promise<void> {
    if (!this.env.hasRole('worker')) return;
    await this.beat();
    const forget = `DELETE FROM workers WHERE alive_until < now() - $1 * interval '1 hour'`;
    await this.own.query(forget, [REMEMBERED_HOURS]).catch(() => undefined); // the next start forgets them
    this.plan();
  }

  /** Frees what it has leased: it works on nothing any more. */
  async onApplicationShutdown(): Promise<void> {
    this.stopped = true;
    clearTimeout(this.timer);
    await this.underWay;
    if (this.lastBeatMs > Number.NEGATIVE_INFINITY) {
      const leave = 'UPDATE workers SET alive_until = least(alive_until, now()) WHERE id = $1';
      await this.own.query(leave, [this.id]).catch(() => undefined);
    }
    await this.own.end();
  }

  protected plan(): void {
    if (this.stopped) return;
    this.timer = setTimeout(() => {
      this.underWay = this.beat().finally(() => this.plan());
    }, BEAT_MS);
  }

  /** Sends one heartbeat. It also cuts off heartbeats that others sent before the database clock was set back. */
  async beat(): Promise<void> {
    // Counted from before it leaves: the database counts from later.
    const sentAtMs = this.clock.monotonicMs();
    try {
      await this.own.query(
        `WITH clock_set_back AS (
           UPDATE workers SET alive_until = now() + $2 * interval '1 second'
           WHERE id <> $1 AND alive_until > now() + 2 * $2 * interval '1 second')
         INSERT INTO workers (id, alive_until) VALUES ($1, now() + $2 * interval '1 second')
         ON CONFLICT (id) DO UPDATE SET alive_until = excluded.alive_until`,
        [this.id, ALIVE_SECONDS],
      );
      this.lastBeatMs = sentAtMs;
    } catch (error) {
      if (this.mayWork()) this.log.warn({ msg: 'a heartbeat was lost; the next one comes', ...errorTrace(error) });
    }
  }
}
