import { randomUUID } from 'node:crypto';
import { Injectable, Logger, type OnApplicationShutdown, type OnModuleInit } from '@nestjs/common';
import type pg from 'pg';
import { Clock } from '../config/clock.js';
import { Env, type Role } from '../config/env.js';
import { keepOpen, newPool } from '../database/connect/pools.js';
import { PrismaService } from '../database/prisma.service.js';
import { isDatabaseUnavailable } from '../errors/database-fault.js';
import { errorTrace } from '../errors/error-trace.js';

/** How often to send a heartbeat. */
const BEAT_MS = 2_000;

/** Timeout for a heartbeat. The next one uses a new connection. */
const BEAT_TIMEOUT_MS = 2_000;

/** How long a process counts as alive after a heartbeat. */
const ALIVE_SECONDS = 8;

/** How long after the last heartbeat a failed one is logged. */
const LOGGED_MS = 5_000;

/** Seconds without a heartbeat after which no process has a role; longer than a restart takes. */
export const GONE_SECONDS = 30;

/** How long to keep the rows of ended processes. The newest shows since when none is alive. */
const KEPT_HOURS = 24;

/** This process in the database, by whose clock it is alive until its heartbeats end. */
@Injectable()
export class WorkerProcess implements OnModuleInit, OnApplicationShutdown {
  /** Differs after each start. */
  readonly id: string = randomUUID();
  private readonly log = new Logger(WorkerProcess.name);
  /** A dedicated connection, because the busiest process would look dead if its heartbeat waited behind work. */
  private readonly own: pg.Pool;
  private lastBeatMs = Number.NEGATIVE_INFINITY;
  private timer: NodeJS.Timeout | undefined;
  private beating: Promise<void> | undefined;
  private stopped = false;
  private watched = { condition: 'FALSE', tell: (_: boolean) => {} };

  constructor(
    private readonly env: Env,
    private readonly clock: Clock,
    private readonly prisma: PrismaService,
  ) {
    this.own = newPool({
      connectionString: prisma.url,
      max: 1,
      idleTimeoutMillis: 0,
      connectionTimeoutMillis: BEAT_TIMEOUT_MS,
      query_timeout: BEAT_TIMEOUT_MS,
      statement_timeout: BEAT_TIMEOUT_MS,
      application_name: 'notebridge-heartbeat',
    });
  }

  /** Reads a condition with each heartbeat, which costs no further statement. @param condition SQL */
  watch(condition: string, tell: (holds: boolean) => void): void {
    this.watched = { condition, tell };
  }

  /** Seconds since a process with a role was last alive; null if none was for a day. */
  async secondsSince(role: Role): Promise<number | null> {
    const { rows } = await this.prisma.pool.query<{ seconds: number }>(
      `SELECT greatest(0, $1 - extract(epoch FROM alive_until - now()))::float8 AS seconds
       FROM workers WHERE $2 = ANY (roles) ORDER BY alive_until DESC LIMIT 1`,
      [ALIVE_SECONDS, role],
    );
    return rows[0]?.seconds ?? null;
  }

  async onModuleInit(): Promise<void> {
    await keepOpen(this.own);
    await this.beat();
    const deleteOld = `DELETE FROM workers WHERE alive_until < now() - $1 * interval '1 hour'`;
    await this.own.query(deleteOld, [KEPT_HOURS]).catch(() => undefined); // the next start deletes them
    this.plan();
  }

  async onApplicationShutdown(): Promise<void> {
    this.stopped = true;
    clearTimeout(this.timer);
    await this.beating;
    if (this.lastBeatMs > Number.NEGATIVE_INFINITY) {
      const leave = 'UPDATE workers SET alive_until = least(alive_until, now()) WHERE id = $1';
      await this.own.query(leave, [this.id]).catch(() => undefined);
    }
    await this.own.end();
  }

  protected plan(): void {
    if (this.stopped) return;
    this.timer = setTimeout(() => {
      this.beating = this.beat().finally(() => this.plan());
    }, BEAT_MS);
  }

  /** Sends one heartbeat. */
  async beat(): Promise<void> {
    try {
      const { rows } = await this.own.query<{ holds: boolean }>(
        `INSERT INTO workers (id, roles, alive_until) VALUES ($1, $3, now() + $2 * interval '1 second')
         ON CONFLICT (id) DO UPDATE SET alive_until = excluded.alive_until
         RETURNING ${this.watched.condition} AS holds`,
        [this.id, ALIVE_SECONDS, this.env.ROLES],
      );
      this.lastBeatMs = this.clock.monotonicMs();
      if (rows[0]) this.watched.tell(rows[0].holds);
    } catch (error) {
      if (isDatabaseUnavailable(error) || this.clock.monotonicMs() - this.lastBeatMs > LOGGED_MS) return;
      this.log.warn({ msg: 'a heartbeat failed and will be retried', ...errorTrace(error) });
    }
  }
}
