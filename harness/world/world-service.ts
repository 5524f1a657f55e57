import type { NestFastifyApplication } from '@nestjs/platform-fastify';
import { Test } from '@nestjs/testing';
import { AppModule } from '../../src/app.module.js';
import { Clock } from '../../src/config/clock.js';
import { validateEnv } from '../../src/config/env.js';
import { Random } from '../../src/config/random.js';
import { Database } from '../../src/database/database.js';
import { WorkerProcess } from '../../src/queue/due-rows/worker-process.js';
import { Poller } from '../../src/queue/notifier/poller.js';
import { QueueNotifier } from '../../src/queue/notifier/queue-notifier.js';
import { QueueModule } from '../../src/queue/queue.module.js';
import { httpAdapter, setupApp } from '../../src/setup.js';
import { Changes } from './changes.js';
import { PROCESSORS, WORK_OF_POLLS, type Work, workOf } from './work.js';
import { type IdlePoller, type RecordedNotifications, WorldQueueModule } from './world-queue.js';

export type Variables = Readonly<Record<string, string | undefined>>;

/** The whole service in this process, which does nothing by itself but answer. */
export interface WorldService {
  readonly app: NestFastifyApplication;
  readonly url: string;
  /** What it would do by itself. */
  readonly work: Work;
  readonly notified: RecordedNotifications;
  readonly changes: Changes;
  beat(): Promise<void>;
}

/** What a service of a world is given in the place of the machine's. */
export interface ServiceParts {
  readonly clock: Clock;
  readonly random: Random;
  /** Lets a moment pass. */
  readonly step: () => Promise<unknown>;
}

/** Starts the product as it is but for its clock, its queue, and what would run by itself. */
export async function startService(settings: Variables, { clock, random, step }: ServiceParts): Promise<WorldService> {
  const env = validateEnv(settings);
  const building = Test.createTestingModule({ imports: [AppModule.with(env)] })
    .overrideModule(QueueModule)
    .useModule(WorldQueueModule)
    .overrideProvider(Clock)
    .useValue(clock)
    .overrideProvider(Random)
    .useValue(random);
  for (const processor of PROCESSORS) building.overrideProvider(processor).useValue({});
  const module = await building.compile();
  const app = module.createNestApplication<NestFastifyApplication>(httpAdapter(env), { logger: false });
  await setupApp(app);
  const database = app.get(Database);
  for (const { options } of [database.pool, database.bulkPool]) options.connectionTimeoutMillis = 0; // a slow machine is no fault
  await app.listen(0, '127.0.0.1');
  const stranger = app.get<IdlePoller>(Poller).names.find((name) => !(name in WORK_OF_POLLS));
  if (stranger !== undefined) throw new Error(`Nothing in a world does what the poll "${stranger}" is for.`);
  return {
    app,
    url: await app.getUrl(),
    work: workOf(app, step),
    notified: app.get(QueueNotifier),
    changes: new Changes(database),
    beat: () => app.get(WorkerProcess).beat(),
  };
}
