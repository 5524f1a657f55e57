import type { INestApplicationContext } from '@nestjs/common';
import type { NestFastifyApplication } from '@nestjs/platform-fastify';
import { Test } from '@nestjs/testing';
import { AppModule } from '../../src/app.module.js';
import { Clock } from '../../src/config/clock.js';
import { validateEnv } from '../../src/config/env.validation.js';
import { Random } from '../../src/config/random.js';
import { Database } from '../../src/database/database.js';
import { PrismaService } from '../../src/database/prisma.service.js';
import { DueRowsModule } from '../../src/due-rows/due-rows.module.js';
import { WorkerProcess } from '../../src/processes/worker-process.js';
import { Poller } from '../../src/queue/notifier/poller.js';
import { QueueNotifier } from '../../src/queue/notifier/queue-notifier.js';
import { Feeder } from '../../src/queue/work/feeder.js';
import { Processes } from '../../src/queue/work/processes.js';
import { WorkStore } from '../../src/queue/work/work-store.js';
import { BURST_MS } from '../../src/sessions/model/next-lookup.js';
import { httpAdapter, setupApp } from '../../src/setup.js';
import { ManualFeeder, ManualProcesses, MemoryWorkStore } from '../memory-queue/manual-work.js';
import type { MemoryStore } from '../memory-queue/memory-store.js';
import { Changes } from './changes.js';
import { WORK_OF_POLLS, type Work, workOf } from './work.js';
import { type IdlePoller, type RecordedNotifications, WorldQueueModule } from './world-queue.js';

export type Variables = Readonly<Record<string, string | undefined>>;

/** One process of the service: it answers requests, and does background work only when called. */
export interface WorldService {
  readonly app: NestFastifyApplication;
  readonly url: string;
  readonly work: Work;
  readonly notifications: RecordedNotifications;
  readonly changes: Changes;
  /** The queues whose jobs name rows. */
  readonly store: MemoryStore;
  /** Finds due rows as the poller does. */
  poll(): Promise<Polled>;
  beat(): Promise<void>;
}

/** The findings of a poll. */
interface Polled {
  readonly due: Set<keyof Work>;
  /** Milliseconds until the next row is due; infinite without one. */
  readonly nextInMs: number;
  /** True if an audit entry is not linked. */
  readonly isUnlinked: boolean;
}

export const NOTHING_DUE: Polled = { due: new Set(), nextInMs: Number.POSITIVE_INFINITY, isUnlinked: false };

/** Replacements of the machine's clock and randomness. */
export interface ServiceParts {
  readonly clock: Clock;
  readonly random: Random;
  /** Moves time by the smallest step. */
  readonly step: () => Promise<unknown>;
}

/**
 * Starts the service with the world's clock, randomness and queue.
 *
 * @throws Error if the service declares a poll for which `WORK_OF_POLLS` has no work
 */
export async function startService(settings: Variables, { clock, random, step }: ServiceParts): Promise<WorldService> {
  const env = validateEnv(settings);
  const workStore = new MemoryWorkStore(clock);
  const store = workStore.jobs;
  const builder = Test.createTestingModule({ imports: [AppModule.with(env)] })
    .overrideModule(DueRowsModule)
    .useModule(WorldQueueModule)
    .overrideProvider(Clock)
    .useValue(clock)
    .overrideProvider(Random)
    .useValue(random)
    .overrideProvider(WorkStore)
    .useValue(workStore)
    .overrideProvider(Feeder)
    .useClass(ManualFeeder)
    .overrideProvider(Processes)
    .useClass(ManualProcesses);
  const module = await builder.compile();
  const app = module.createNestApplication<NestFastifyApplication>(httpAdapter(env), { logger: false });
  await setupApp(app);
  const changes = new Changes(app.get(Database));
  await app.listen(0, '127.0.0.1');
  const poller = app.get<IdlePoller>(Poller);
  const unknownPoll = poller.names.find((name) => !(name in WORK_OF_POLLS));
  if (unknownPoll !== undefined) {
    await app.close();
    throw new Error(`No test would do the work of the poll "${unknownPoll}". Add it to WORK_OF_POLLS.`);
  }
  // Not before it is used, because a process without workers has none.
  let work: Work | undefined;
  return {
    app,
    url: await app.getUrl(),
    get work() {
      work ??= workOf(app, step, store);
      return work;
    },
    notifications: app.get(QueueNotifier),
    changes,
    store,
    poll: async () => {
      await app.get(Feeder).round();
      return withJobs(
        polled(await poller.waitsByName()),
        Math.min(store.nextInMs ?? Number.POSITIVE_INFINITY, await nextSessionInMs(app, clock)),
      );
    },
    beat: async () => {
      await app.get(WorkerProcess).beat();
      await app.get(Processes).seen();
    },
  };
}

/** @param waits milliseconds until a row of each poll is due */
function polled(waits: readonly [name: string, ms: number][]): Polled {
  const kinds = waits.map(([name, ms]) => ({ kind: WORK_OF_POLLS[name] as keyof Work, ms }));
  const works = kinds.filter(({ kind }) => kind !== 'links');
  return {
    due: new Set(works.filter(({ ms }) => ms <= 0).map(({ kind }) => kind)),
    nextInMs: Math.min(...works.map(({ ms }) => ms).filter((ms) => ms > 0)),
    isUnlinked: kinds.some(({ kind, ms }) => kind === 'links' && ms <= 0),
  };
}

/**
 * Milliseconds until a session is due, which the feeder then adds. Half of them if a burst of events is fetched then: that is
 * a short pause, too.
 */
async function nextSessionInMs(app: INestApplicationContext, clock: Clock): Promise<number> {
  const now = clock.now();
  const where = { dueAt: { gt: now } };
  const orderBy = { dueAt: 'asc' } as const;
  const next = await app.get(PrismaService).session.findFirst({ where, orderBy, select: { dueAt: true } });
  const inMs = next?.dueAt ? next.dueAt.getTime() - now.getTime() : Number.POSITIVE_INFINITY;
  return inMs <= BURST_MS ? inMs / 2 : inMs;
}

/** @param inMs milliseconds until a job can start; undefined without any */
function withJobs(found: Polled, inMs = Number.POSITIVE_INFINITY): Polled {
  if (inMs <= 0) found.due.add('jobs');
  return inMs > 0 ? { ...found, nextInMs: Math.min(found.nextInMs, inMs) } : found;
}
