/** What the EHR has to know of. */
export const FEED_TYPES = [
  'person.synced',
  'person.needs-review',
  'person.deleted',
  'user.created',
  'session.created',
  'session.processing-started',
  'session.notes-completed',
  'session.notes-ready',
  'session.completed',
  'session.failed',
  'processing.notes-finished',
  'processing.finished',
  'compliance.completed',
  'compliance.failed',
  'compliance.answered',
  'smart-edit.completed',
  'smart-edit.failed',
  'import.finished',
] as const;

export type FeedType = (typeof FEED_TYPES)[number];

/** An event that a transaction is about to append: ids and codes, never clinical text or a name. */
export interface PendingFeedEvents {
  type: FeedType;
  /** What it is about, as a path below /v1, e.g. `clients/c-1`. */
  subject: string;
  data: Record<string, string | number | boolean | null>;
}
