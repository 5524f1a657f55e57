import { createHash, randomUUID } from 'node:crypto';
import { Injectable, Logger, type OnApplicationShutdown, type OnModuleInit } from '@nestjs/common';
import { Clock } from '../../config/clock.js';
import { Env } from '../../config/env.js';
import { withTimeout } from '../../config/with-timeout.js';
import { PrismaService } from '../../database/prisma.service.js';
import { isDatabaseUnavailable } from '../../errors/database-fault.js';
import { errorTrace } from '../../errors/error-trace.js';
import { type Health, HealthIndicator, healthOf } from '../../monitoring/health-indicator.js';

/** How often a process says that it is there. */
const SEEN_EVERY_MS = 10_000;

/** How long after that a process counts as running. */
const GONE_AFTER_SECONDS = 30;

/** How long a shutdown waits for the database. */
const STOP_MS = 1_000;

/** How long the row of a process that was killed is kept. */
const KEPT_DAYS = 1;

/**
 * What all processes must have in common, because a limiter belongs to one queue: the store of the queues, its prefix and
 * the limit. Without user and password, which may be changed one process after the other.
 */
export function storeDigest({ REDIS_URL, QUEUE_PREFIX, USER_MANAGEMENT_CALLS_PER_MINUTE: limit }: StoreEnv): string {
  const redis = REDIS_URL === undefined ? undefined : new URL(REDIS_URL);
  const place = redis ? [redis.hostname, redis.port || '6379', redis.pathname, QUEUE_PREFIX] : ['postgresql'];
  return createHash('sha256')
    .update(JSON.stringify([...place, limit]))
    .digest('hex')
    .slice(0, 12);
}

type StoreEnv = Pick<Env, 'REDIS_URL' | 'QUEUE_PREFIX' | 'USER_MANAGEMENT_CALLS_PER_MINUTE'>;

/** The processes of the service, each one row, which its process renews every ten seconds. */
@Injectable()
export class Processes implements OnModuleInit, OnApplicationShutdown {
  private readonly log = new Logger(Processes.name);
  private readonly id = randomUUID();
  private readonly store: string;
  private cancelTimer = () => {};
  private isStopped = false;

  constructor(
    private readonly env: Env,
    private readonly prisma: PrismaService,
    private readonly clock: Clock,
  ) {
    this.store = storeDigest(env);
  }

  async onModuleInit(): Promise<void> {
    await this.seen();
    this.plan();
  }

  async onApplicationShutdown(): Promise<void> {
    this.isStopped = true;
    this.cancelTimer();
    const deleted = this.prisma.$executeRaw`DELETE FROM processes WHERE id = ${this.id}::uuid`;
    await withTimeout(deleted, STOP_MS, () => undefined).catch(() => undefined);
  }

  /** Two digests mean two limiters, so that the platform may be called twice as often as allowed. */
  @HealthIndicator({ name: 'processes', needs: ['database'] })
  async health(): Promise<Health> {
    const stores = await this.prisma.$queryRaw<{ store: string; processes: number }[]>`
      SELECT store, count(*)::int AS processes FROM processes
      WHERE seen_at > clock_timestamp() - ${GONE_AFTER_SECONDS} * interval '1 second' GROUP BY store ORDER BY 2 DESC, 1`;
    const groups = stores.map(({ processes, store }) => `${processes} × ${store}`).join(', ');
    return healthOf([stores.length > 1 && { code: 'processes-differ', values: { groups } }]);
  }

  protected plan(): void {
    this.cancelTimer = this.clock.after(SEEN_EVERY_MS, () => {
      void this.seen().finally(() => {
        if (!this.isStopped) this.plan();
      });
    });
  }

  /** Renews the row, and deletes those of processes that were killed. */
  async seen(): Promise<void> {
    try {
      await this.prisma.$executeRaw`
        WITH gone AS (DELETE FROM processes WHERE seen_at < clock_timestamp() - ${KEPT_DAYS} * interval '1 day')
        INSERT INTO processes (id, roles, store) VALUES (${this.id}::uuid, ${this.env.ROLES}::text[], ${this.store})
        ON CONFLICT (id) DO UPDATE SET seen_at = clock_timestamp()`;
    } catch (error) {
      if (isDatabaseUnavailable(error)) return;
      this.log.warn({ msg: 'this process could not renew its row', ...errorTrace(error) });
    }
  }
}
