/** Every queue of the service. A job in any of them is a notifier: it carries a reason, never data. */
export const USER_MANAGEMENT_QUEUE = 'user-management';
export const WEBHOOK_INBOX_QUEUE = 'webhook-inbox';
export const IMPORT_QUEUE = 'imports';

export const QUEUE_NAMES = [
  USER_MANAGEMENT_QUEUE,
  WEBHOOK_INBOX_QUEUE,
  'sessions',
  'session-requests',
  'compliance',
  IMPORT_QUEUE,
] as const;

export type QueueName = (typeof QUEUE_NAMES)[number];

/** What a job holds: why a notification was sent. */
export interface Notification {
  reason: string;
}

/** For sentences: the settings that say where the store is. Their values may hold passwords. */
export const QUEUE_STORE = 'REDIS_URL, or DATABASE_URL without it';
