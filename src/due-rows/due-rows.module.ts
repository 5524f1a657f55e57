import { Global, Module } from '@nestjs/common';
import { Clock } from '../config/clock.js';
import { Env } from '../config/env.js';
import { WorkerProcess } from '../processes/worker-process.js';
import { QueueStore } from '../queue/backend/queue-store.js';
import { Poller } from '../queue/notifier/poller.js';
import { QueueNotifier } from '../queue/notifier/queue-notifier.js';

const PROVIDERS = [QueueNotifier, Poller, WorkerProcess];

/**
 * BullMQ on Redis or PostgreSQL: the notifier that activates workers, the poller that does not need it, and the heartbeat
 * of the workers, on which their leases depend.
 */
@Global()
@Module({
  providers: [
    { provide: QueueStore, inject: [Env, Clock], useFactory: (env: Env, clock: Clock) => new QueueStore(env, clock) },
    ...PROVIDERS,
  ],
  exports: [QueueStore, ...PROVIDERS],
})
export class DueRowsModule {}
