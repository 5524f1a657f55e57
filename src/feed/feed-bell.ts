import { randomUUID } from 'node:crypto';
import { setTimeout as delay } from 'node:timers/promises';
import { Injectable, Logger, type OnApplicationShutdown } from '@nestjs/common';
import pg from 'pg';
import { Clock } from '../config/clock.js';
import { sessionConfig } from '../database/connect/session.js';
import { PrismaService } from '../database/prisma.service.js';
import { errorTrace } from '../errors/error-trace.js';
import { FeedNumbers } from './feed-numbers.js';

const CHANNEL = 'notebridge_feed';

/** Minimum interval between two notifications of a process. */
const RING_INTERVAL_MS = 25;

const CONNECT_TIMEOUT_MS = 5_000;
const KEEP_ALIVE_MS = 5_000;

/** Minimum time between two attempts to listen. */
const RECONNECT_MS = 1_000;

/**
 * Commits that notify wait for each other. In the writers' own transactions this left 0.2 to 0.45 of their throughput (15
 * writers, fsync on); as a statement after their commit it costs nothing measurable.
 */
const NOTIFY = `SELECT pg_notify('${CHANNEL}', $1)`;

/**
 * Makes new events visible: after their commit it numbers them and wakes the readers of all processes. A notification only
 * saves time, because readers also poll. A feeder's tick publishes what a killed process left.
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
  private connectAtMs = Number.NEGATIVE_INFINITY;
  /** How often readers were woken. A reader that compares it misses no event between its read and its wait. */
  rings = 0;

  constructor(
    private readonly prisma: PrismaService,
    private readonly clock: Clock,
    private readonly numbers: FeedNumbers,
  ) {}

  /** Calls `hear` after new events became visible. @returns ends it */
  onRing(hear: () => void): () => void {
    this.hearers.add(hear);
    return () => void this.hearers.delete(hear);
  }

  /** Publishes what was committed, now or 25 ms after the last time. */
  readonly ring = (): void => {
    this.isRung = true;
    if (!this.isRinging) void this.ringWhileNeeded();
  };

  /** Publishes what a killed process, or one without a database, has left. */
  async publishLost(): Promise<void> {
    if (await this.numbers.isPending()) await this.publish();
  }

  /** Opens the connection that hears other processes, if it is not open. Call it again later to replace a lost one. */
  listen(): void {
    if (this.client || this.stopped || this.clock.monotonicMs() < this.connectAtMs) return;
    const { connectionString, onConnect } = sessionConfig(this.prisma.url);
    const client = new pg.Client({
      connectionString,
      keepAlive: true,
      keepAliveInitialDelayMillis: KEEP_ALIVE_MS,
      connectionTimeoutMillis: CONNECT_TIMEOUT_MS,
      application_name: 'notebridge-feed',
    });
    this.client = client;
    client.on('error', (error) => this.giveUp(client, error));
    client.on('end', () => this.giveUp(client));
    client.on('notification', ({ payload }) => {
      if (payload !== this.id) this.hear();
    });
    const start = async () => {
      await client.connect();
      await onConnect(client);
      await client.query(`LISTEN ${CHANNEL}`);
      this.hear(); // events may have come before
    };
    start().catch((error: unknown) => this.giveUp(client, error));
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
      const published = this.publish().catch((error: unknown) => {
        this.log.warn({ msg: 'new events are not visible yet; a worker publishes them later', ...errorTrace(error) });
      });
      await Promise.all([published, delay(RING_INTERVAL_MS, undefined, { ref: false })]);
    }
    this.isRinging = false;
  }

  private async publish(): Promise<void> {
    await this.numbers.assign();
    this.hear();
    await this.prisma.pool.query(NOTIFY, [this.id]);
  }

  private hear(): void {
    this.rings += 1;
    for (const hear of this.hearers) hear();
  }

  private giveUp(client: pg.Client, error?: unknown): void {
    if (this.client !== client || this.stopped) return;
    this.client = undefined;
    this.connectAtMs = this.clock.monotonicMs() + RECONNECT_MS;
    this.log.warn({ msg: 'the connection that listens for feed events was lost; readers poll', ...errorTrace(error) });
    client.connection.stream.destroy();
  }
}
