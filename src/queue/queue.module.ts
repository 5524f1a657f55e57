import { BullModule, getQueueToken } from '@nestjs/bullmq';
import { Global, Module } from '@nestjs/common';
import type { Queue } from 'bullmq';
import { Clock } from '../config/clock.js';
import { Env } from '../config/env.js';
import { producerOptions, workerOptions } from './backend/backend.js';
import { BoundedQueue } from './backend/bounded-queue.js';
import { BoundedWorker } from './backend/bounded-worker.js';
import { QUEUE_NAMES, type QueueName, type Ring } from './backend/queue-names.js';
import { WorkerProcess } from './due-rows/worker-process.js';
import { WorkersRepository } from './due-rows/workers.repository.js';
import { Sweep } from './notifier/poller.js';
import { Doorbell } from './notifier/queue-notifier.js';

const KEEP = { removeOnComplete: true, removeOnFail: 100 };

// What Nest makes for each name, and for each @Processor().
BullModule.queueClass = BoundedQueue;
BullModule.workerClass = BoundedWorker;

/**
 * BullMQ on Redis or PostgreSQL: the doorbell that wakes workers, the sweep that does not need it, and the workers' sign
 * of life that their leases stand on.
 */
@Global()
@Module({
  imports: [
    BullModule.forRootAsync({ inject: [Env], useFactory: (env: Env) => workerOptions(env) }),
    ...QUEUE_NAMES.map((name) =>
      BullModule.registerQueueAsync({
        name,
        inject: [Env],
        useFactory: (env: Env) => ({ ...producerOptions(env), defaultJobOptions: KEEP }),
      }),
    ),
  ],
  providers: [
    {
      provide: Doorbell,
      inject: [Clock, ...QUEUE_NAMES.map((name) => getQueueToken(name))],
      useFactory: (clock: Clock, ...queues: Queue<Ring>[]) =>
        new Doorbell(new Map(queues.map((queue) => [queue.name as QueueName, queue])), clock),
    },
    Sweep,
    WorkersRepository,
    WorkerProcess,
  ],
  exports: [Doorbell, Sweep, WorkersRepository, WorkerProcess, BullModule],
})
export class QueueModule {}
