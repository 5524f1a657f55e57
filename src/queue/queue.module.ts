import { BullModule, getQueueToken } from '@nestjs/bullmq';
import { Global, Module } from '@nestjs/common';
import { DiscoveryModule, DiscoveryService } from '@nestjs/core';
import type { Queue } from 'bullmq';
import { Clock } from '../config/clock.js';
import { Env } from '../config/env.js';
import { producerOptions, workerOptions } from './backend/backend.js';
import { BoundedQueue, BoundedWorker } from './backend/bounded.js';
import { type Notification, QUEUE_NAMES, type QueueName } from './backend/queue-names.js';
import { DueParts } from './due-rows/due-loop.js';
import { WorkerProcess } from './due-rows/worker-process.js';
import { Poller } from './notifier/poller.js';
import { QueueNotifier } from './notifier/queue-notifier.js';
import { StoreWatch } from './notifier/store-watch.js';

const KEEP = { removeOnComplete: true, removeOnFail: 100 };

// What Nest makes for each name, and for each @Processor().
BullModule.queueClass = BoundedQueue;
BullModule.workerClass = BoundedWorker;

/**
 * BullMQ on Redis or PostgreSQL: the notifier that activates workers, the poller that does not need it, and the workers'
 * heartbeat that their leases stand on.
 */
@Global()
@Module({
  imports: [
    DiscoveryModule,
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
      provide: StoreWatch,
      inject: [Clock, DiscoveryService, ...QUEUE_NAMES.map((name) => getQueueToken(name))],
      useFactory: (clock: Clock, discovery: DiscoveryService, ...queues: Queue<Notification>[]) =>
        new StoreWatch(queues, clock, discovery),
    },
    {
      provide: QueueNotifier,
      inject: [Clock, StoreWatch, Poller, ...QUEUE_NAMES.map((name) => getQueueToken(name))],
      useFactory: (clock: Clock, store: StoreWatch, poller: Poller, ...queues: Queue<Notification>[]) =>
        new QueueNotifier(new Map(queues.map((queue) => [queue.name as QueueName, queue])), clock, store, poller),
    },
    Poller,
    WorkerProcess,
    DueParts,
  ],
  exports: [QueueNotifier, Poller, WorkerProcess, DueParts, BullModule],
})
export class QueueModule {}
