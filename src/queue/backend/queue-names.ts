/** The queues. Each job names a row. */
export const QUEUE_NAMES = ['pushes', 'webhooks', 'people', 'imports', 'sessions', 'compliance'] as const;

export type QueueName = (typeof QUEUE_NAMES)[number];

/** A queue without a worker. Health adds a job to it, which nothing takes. */
export const PROBE = 'probe';
