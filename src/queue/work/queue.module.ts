import { BullModule } from '@nestjs/bullmq';
import { Global, Module } from '@nestjs/common';
import { Clock } from '../../config/clock.js';
import { Env } from '../../config/env.js';
import { WorkerProcess } from '../../processes/worker-process.js';
import { Feeder } from './feeder.js';
import { Intervals } from './intervals.js';
import { PostgresWorkStore } from './postgres-store.js';
import { Processes } from './processes.js';
import { RedisWorkStore } from './redis-store.js';
import { WorkQueues } from './work-queues.js';
import { WorkStore } from './work-store.js';

/** The store of the queues: Redis if REDIS_URL is set, otherwise PostgreSQL. */
@Global()
@Module({
  providers: [
    {
      provide: WorkStore,
      inject: [Env, Clock],
      useFactory: ({ REDIS_URL, QUEUE_PREFIX, DATABASE_URL }: Env, clock: Clock): WorkStore =>
        REDIS_URL ? new RedisWorkStore(REDIS_URL, QUEUE_PREFIX, clock) : new PostgresWorkStore(DATABASE_URL, clock),
    },
  ],
  exports: [WorkStore],
})
export class WorkStoreModule {}

/**
 * BullMQ. Processors find their connection here; `registerQueue` is not used, because it would let the workers share the
 * producers' connection, which fails at once while the store is away.
 */
@Global()
@Module({
  imports: [
    WorkStoreModule,
    BullModule.forRootAsync({
      imports: [WorkStoreModule],
      inject: [WorkStore],
      useFactory: (store: WorkStore) => {
        BullModule.workerClass = store.workerClass;
        return store.workerOptions;
      },
    }),
    // Its registrar starts the workers of all processors.
    BullModule.registerQueue(),
  ],
  providers: [WorkerProcess, WorkQueues, Intervals, Feeder, Processes],
  exports: [WorkerProcess, WorkQueues, Intervals, Feeder, Processes],
})
export class QueueModule {}
