/** Queues whose jobs only notify, and are empty. */
export const WEBHOOK_INBOX_QUEUE = 'webhook-inbox';

export const QUEUE_NAMES = [WEBHOOK_INBOX_QUEUE, 'sessions', 'session-requests', 'compliance'] as const;

export type QueueName = (typeof QUEUE_NAMES)[number];

/** Queues whose jobs name rows. */
export const WORK_QUEUE_NAMES = ['pushes', 'people', 'imports'] as const;

export type WorkQueueName = (typeof WORK_QUEUE_NAMES)[number];
