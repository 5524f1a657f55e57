import { randomUUID } from 'node:crypto';
import { setTimeout as delay } from 'node:timers/promises';
import { Injectable, Logger, type OnApplicationShutdown } from '@nestjs/common';
import pg from 'pg';
import { Clock } from '../config/clock.js';
import { sessionConfig } from '../database/connect/session.js';
import { PrismaService } from '../database/prisma.service.js';
import { codeOf } from '../errors/error-code.js';
import { errorTrace } from '../errors/error-trace.js';

const CHANNEL = 'notebridge_feed';

/** Minimum interval between two notifications of a process. */
const RING_INTERVAL_MS = 25;

const CONNECT_TIMEOUT_MS = 5_000;
const MIN_BACKOFF_MS = 1_000;
const MAX_BACKOFF_MS = 60_000;

/**
 * Commits that notify wait for each other. In the writers' own transactions this left 0.2 to 0.45 of their throughput (15
 * writers, fsync on); as a statement after their commit it costs nothing measurable.
 */
const NOTIFY = `SELECT pg_notify('${CHANNEL}', $1)`;

/**
 * Wakes the waiting readers of all processes after new events were committed. It only saves time: readers also poll,
 * because a notification may be lost.
 */
@Injectable()
export class FeedBell implements OnApplicationShutdown {
  private readonly log = new Logger(FeedBell.name);
  /** Identifies this process, which wakes its own readers directly. */
  private readonly id = randomUUID();
  private readonly hearers = new Set<() => void>();
  private isRung = false;
  private isRinging = false;
  private stopped = false;
  private client: pg.Client | undefined;
  private backoffMs = MIN_BACKOFF_MS;
  private connectAtMs = Number.NEGATIVE_INFINITY;

  constructor(
    private readonly prisma: PrismaService,
    private readonly clock: Clock,
  ) {}

  /** Calls `hear` after new events were committed in any process. */
  onRing(hear: () => void): void {
    this.hearers.add(hear);
  }

  /** Wakes all readers now, or 25 ms after the last time. */
  readonly ring = (): void => {
    this.isRung = true;
    if (!this.isRinging) void this.ringWhileNeeded();
  };

  /** Opens the connection that hears other processes, if it is not open. Call it again later to replace a lost one. */
  listen(): void {
    if (this.client || this.stopped || this.clock.monotonicMs() < this.connectAtMs) return;
    const { connectionString, onConnect } = sessionConfig(this.prisma.url);
    const client = new pg.Client({
      connectionString,
      keepAlive: true,
      connectionTimeoutMillis: CONNECT_TIMEOUT_MS,
      application_name: 'notebridge-feed',
    });
    this.client = client;
    client.on('error', (error) => this.replace(client, error));
    client.on('end', () => this.replace(client));
    client.on('notification', ({ payload }) => {
      if (payload !== this.id) this.hear();
    });
    void this.startListening(client, onConnect).catch((error: unknown) => this.replace(client, error));
  }

  /** Does not wait for the server, which may have become silent. */
  onApplicationShutdown(): void {
    this.stopped = true;
    this.client?.connection.stream.destroy();
  }

  private async ringWhileNeeded(): Promise<void> {
    this.isRinging = true;
    while (this.isRung && !this.stopped) {
      this.isRung = false;
      this.hear();
      const notified = this.prisma.pool.query(NOTIFY, [this.id]).catch((error: unknown) => {
        // After a failover, the other connection listens to the former primary. Until it is replaced, readers poll.
        if (this.client && codeOf(error) === '25006') this.replace(this.client, error);
      });
      await Promise.all([notified, delay(RING_INTERVAL_MS, undefined, { ref: false })]);
    }
    this.isRinging = false;
  }

  private hear(): void {
    for (const hear of this.hearers) hear();
  }

  private async startListening(client: pg.Client, onConnect: (client: pg.Client) => Promise<void>): Promise<void> {
    await client.connect();
    await onConnect(client);
    await client.query(`LISTEN ${CHANNEL}`);
    this.backoffMs = MIN_BACKOFF_MS;
    this.hear(); // events may have come before
  }

  /** Gives up a connection. The next one is opened with increasing backoff. */
  private replace(client: pg.Client, error?: unknown): void {
    if (this.client !== client || this.stopped) return;
    this.client = undefined;
    this.connectAtMs = this.clock.monotonicMs() + this.backoffMs;
    this.backoffMs = Math.min(2 * this.backoffMs, MAX_BACKOFF_MS);
    this.log.warn({ msg: 'the connection that listens for feed events was lost; readers poll', ...errorTrace(error) });
    client.connection.stream.destroy();
  }
}
