import { readFileSync } from 'node:fs';
import { availableParallelism, loadavg } from 'node:os';
import { askRedis } from '../../harness/redis-server.js';
import { ADMIN_KEY, type World } from '../world.js';
import { Lags, median } from './lags.js';
import type { ProcessRow, Row } from './row.js';

const MIB = 1024 ** 2;
/** How long the platform remembers a webhook that has arrived: longer than an interval, and than notes should take. */
const KEPT_MS = 600_000;

const OPEN = "pg_stat_activity WHERE application_name LIKE 'notebridge%'";
const SIZE = 'SELECT pg_database_size(current_database())::float8 AS bytes';

/** Watches the processes and their stores, and reports each interval. */
export class Meter {
  readonly feed = new Lags();
  readonly push = new Lags();
  readonly notes = new Lags();
  private readonly webhook = new Lags();
  private readonly memory = new Map<string, { pid: number; mib: number[] }>();
  private postgres = 0;
  private redis = 0;
  private dueSeconds = 0;
  /** How long the oldest due work had waited when it was last known. */
  waited = 0;
  private readonly begun = performance.now();
  private since: number;

  /**
   * @param events how many the feed has given so far
   * @param held how many sessions were held back so far
   */
  constructor(
    private readonly world: World,
    private readonly events: () => number,
    private readonly held: () => number,
  ) {
    this.since = world.simulator.state.nowMs();
  }

  /** Looks once. */
  async look(): Promise<void> {
    const { world } = this;
    for (const [place, { roles, pid }] of world.processes.states().entries()) {
      const mib = pid && residentMib(pid);
      if (!pid || !mib) continue;
      const name = `${roles} ${place + 1}`;
      const known = this.memory.get(name);
      if (known?.pid === pid) known.mib.push(mib);
      else this.memory.set(name, { pid, mib: [mib] });
    }
    this.postgres = Math.max(this.postgres, await world.count(OPEN));
    this.redis = Math.max(this.redis, await redisConnections(world));
    this.waited = (await oldestDue(world)) ?? this.waited;
    this.dueSeconds = Math.max(this.dueSeconds, this.waited);
  }

  /** Milliseconds from the platform's last word about notes of this session until now; undefined if it is forgotten. */
  sinceNotes(sessionId: string): number | undefined {
    const { state } = this.world.simulator;
    const told = state.deliveries
      .list()
      .findLast(
        ({ eventType, body }) => eventType === 'SESSION_PROCESSING_NOTES_COMPLETED' && body.includes(sessionId),
      );
    return told && state.nowMs() - told.createdAt;
  }

  /** Seconds since the last row. */
  get secondsOfRow(): number {
    return (this.world.simulator.state.nowMs() - this.since) / 1_000;
  }

  /** Makes a row of the measurements since the last one. */
  async row(): Promise<Row> {
    await this.look();
    const { world } = this;
    const { counts, processes, simulator } = world;
    this.countWebhooks();
    const [size] = await world.rows<{ bytes: number }>(SIZE);
    const states = processes.states();
    const row: Row = {
      minutes: (performance.now() - this.begun) / 60_000,
      processes: [...this.memory].map(([name, { pid, mib }]): ProcessRow => ({ name, pid, mib: median(mib) })),
      apiMib: this.most('api'),
      workerMib: this.most('worker'),
      starts: states.reduce((sum, { starts }) => sum + starts, 0),
      postgres: this.postgres,
      redis: this.redis,
      databaseMib: (size?.bytes ?? 0) / MIB,
      feed: this.feed.take(),
      push: this.push.take(),
      webhook: this.webhook.take(),
      notes: this.notes.take(),
      dueSeconds: this.dueSeconds,
      kills: counts.kills,
      faults: counts.faults,
      requests: counts.requests,
      sessions: simulator.state.sessions.list().length,
      held: this.held(),
      events: this.events(),
      logMib: states.reduce((sum, { logged }) => sum + logged, 0) / MIB,
      ownMib: Math.round(process.memoryUsage.rss() / MIB),
      load: (loadavg()[1] ?? 0) / availableParallelism(),
    };
    this.memory.clear();
    [this.postgres, this.redis, this.dueSeconds] = [0, 0, 0];
    return row;
  }

  /** Adds the answers to webhooks since the last row, and forgets what has arrived long ago. */
  private countWebhooks(): void {
    const { deliveries, nowMs } = this.world.simulator.state;
    const now = nowMs();
    for (const { attempts } of deliveries.list())
      for (const { at, durationMs } of attempts) if (at >= this.since && at < now) this.webhook.add(durationMs);
    this.since = now;
    this.world.counts.deliveries += deliveries.forgetDelivered(now - KEPT_MS);
  }

  private most(role: string): number {
    const ofRole = [...this.memory].filter(([name]) => name.startsWith(role));
    return Math.max(0, ...ofRole.flatMap(([, { mib }]) => mib));
  }
}

/** Resident memory (proc_pid_status(5)); 0 of a process that has just ended. */
function residentMib(pid: number): number {
  try {
    const [, kib = '0'] = /^VmRSS:\s+(\d+) kB/m.exec(readFileSync(`/proc/${pid}/status`, 'utf8')) ?? [];
    return Math.round(Number(kib) / 1024);
  } catch {
    return 0;
  }
}

async function redisConnections({ redis }: World): Promise<number> {
  const [, clients = '0'] =
    /connected_clients:(\d+)/.exec(redis ? await askRedis(redis.port, 'INFO clients') : '') ?? [];
  return Math.max(0, Number(clients) - 1); // without the one that asks
}

/** The longest that any due work has waited; undefined if no process answers. */
export async function oldestDue({ receivers }: World): Promise<number | undefined> {
  const headers = { authorization: `Bearer ${ADMIN_KEY}` };
  const metrics = await fetch(`http://127.0.0.1:${receivers[0]}/metrics`, { headers }).then(
    async (answer) => (answer.ok ? await answer.text() : undefined),
    () => undefined,
  );
  if (metrics === undefined) return undefined;
  const ages = [...metrics.matchAll(/^notebridge_oldest_due_seconds\{[^}]*\} (\S+)$/gm)].map(([, age]) => Number(age));
  return Math.max(0, ...ages);
}
