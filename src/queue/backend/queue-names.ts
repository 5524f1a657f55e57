/** Queues whose jobs only notify, and are empty. */
export const QUEUE_NAMES = ['unused'] as const;

export type QueueName = (typeof QUEUE_NAMES)[number];

/** Queues whose jobs name rows. */
export const WORK_QUEUE_NAMES = ['pushes', 'webhooks', 'people', 'imports', 'sessions', 'compliance'] as const;

export type WorkQueueName = (typeof WORK_QUEUE_NAMES)[number];
