import type { BackendFactory, QueueOptions } from 'bullmq';

/** BullMQ on one store. Its queues and workers share connections. */
export interface StoreBackend {
  readonly options: QueueOptions;
  readonly factory: BackendFactory;
  close(): Promise<void>;
}
