import { Global, Module } from '@nestjs/common';
import { Clock } from '../config/clock.js';
import { Env } from '../config/env.js';
import { QueueStore } from './backend/queue-store.js';
import { DueParts } from './due-rows/due-loop.js';
import { WorkerProcess } from './due-rows/worker-process.js';
import { Poller } from './notifier/poller.js';
import { QueueNotifier } from './notifier/queue-notifier.js';

const PARTS = [QueueNotifier, Poller, WorkerProcess, DueParts];

/**
 * BullMQ on Redis or PostgreSQL: the notifier that activates workers, the poller that does not need it, and the heartbeat
 * of the workers, on which their leases depend.
 */
@Global()
@Module({
  providers: [
    { provide: QueueStore, inject: [Env, Clock], useFactory: (env: Env, clock: Clock) => new QueueStore(env, clock) },
    ...PARTS,
  ],
  exports: [QueueStore, ...PARTS],
})
export class QueueModule {}
