import type { INestApplicationContext } from '@nestjs/common';
import type { NestFastifyApplication } from '@nestjs/platform-fastify';
import { Test } from '@nestjs/testing';
import { AppModule } from '../../src/app.module.js';
import { Clock } from '../../src/config/clock.js';
import { validateEnv } from '../../src/config/env.validation.js';
import { Random } from '../../src/config/random.js';
import { Database } from '../../src/database/database.js';
import { PrismaService } from '../../src/database/prisma.service.js';
import { WorkerProcess } from '../../src/processes/worker-process.js';
import { Feeder } from '../../src/queue/work/feeder.js';
import { Intervals } from '../../src/queue/work/intervals.js';
import { Processes } from '../../src/queue/work/processes.js';
import { WorkStore } from '../../src/queue/work/work-store.js';
import { BURST_MS } from '../../src/sessions/model/next-lookup.js';
import { httpAdapter, setupApp } from '../../src/setup.js';
import {
  ManualFeeder,
  ManualHeartbeat,
  ManualIntervals,
  ManualProcesses,
  MemoryWorkStore,
} from '../memory-queue/manual-work.js';
import type { MemoryStore } from '../memory-queue/memory-store.js';
import { Changes } from './changes.js';
import { REPEATED_WORK, type Work, workOf } from './work.js';

export type Variables = Readonly<Record<string, string | undefined>>;

/** One process of the service: it answers requests, and does background work only when called. */
export interface WorldService {
  readonly app: NestFastifyApplication;
  readonly url: string;
  readonly work: Work;
  readonly changes: Changes;
  readonly store: MemoryStore;
  /** Adds due rows. @returns milliseconds until a job can start or a session is due; infinite without one */
  feed(): Promise<number>;
  beat(): Promise<void>;
}

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
 * @throws Error if the service repeats work that `REPEATED_WORK` lacks
 */
export async function startService(settings: Variables, { clock, random, step }: ServiceParts): Promise<WorldService> {
  const env = validateEnv(settings);
  const workStore = new MemoryWorkStore(clock);
  const store = workStore.jobs;
  const builder = Test.createTestingModule({ imports: [AppModule.with(env)] })
    .overrideProvider(Clock)
    .useValue(clock)
    .overrideProvider(Random)
    .useValue(random)
    .overrideProvider(WorkStore)
    .useValue(workStore)
    .overrideProvider(Intervals)
    .useClass(ManualIntervals)
    .overrideProvider(WorkerProcess)
    .useClass(ManualHeartbeat)
    .overrideProvider(Feeder)
    .useClass(ManualFeeder)
    .overrideProvider(Processes)
    .useClass(ManualProcesses);
  const module = await builder.compile();
  const app = module.createNestApplication<NestFastifyApplication>(httpAdapter(env), { logger: false });
  await setupApp(app);
  const changes = new Changes(app.get(Database));
  await app.listen(0, '127.0.0.1');
  const unknown = [...app.get<ManualIntervals>(Intervals).names].find((name) => !(name in REPEATED_WORK));
  if (unknown !== undefined) {
    await app.close();
    throw new Error(`No test would do the repeated work "${unknown}". Add it to REPEATED_WORK.`);
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
    changes,
    store,
    feed: async () => {
      await app.get(Feeder).round();
      return Math.min(store.nextInMs ?? Number.POSITIVE_INFINITY, await nextSessionInMs(app, clock));
    },
    beat: async () => {
      await app.get(WorkerProcess).beat();
      await app.get(Processes).seen();
    },
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
