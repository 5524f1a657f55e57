import type { SessionEvent, UserRole } from '../../src/platform/contract/wire-types.js';

/** The bodies of the platform's webhooks. The spec states no payload for PROCESSING_SESSION_NOTES_FINISHED. */
export type WebhookEvent =
  | SessionEvent
  | { eventType: 'USER_CREATED'; payload: { userId: string; externalUserId?: string | null; role: UserRole } }
  | { eventType: 'PROCESSING_SESSION_FINISHED'; payload: { processingId: string } }
  | { eventType: 'PROCESSING_SESSION_NOTES_FINISHED'; payload?: unknown }
  | {
      eventType: `${'COMPLIANCE' | 'SMART_EDIT'}_JOB_${'COMPLETED' | 'FAILED'}`;
      payload: { jobId: string };
    };

/** Final states of a delivery that did not arrive. */
export const LOST_DELIVERIES = ['failed', 'dropped', 'unsent'] as const;

export type LostDelivery = (typeof LOST_DELIVERIES)[number];

/** One webhook to the partner, with all its attempts. */
export interface Delivery {
  id: number;
  eventType: string;
  /** The body; each attempt sends the same bytes. */
  body: string;
  /**
   * `unsent`: there was no webhook URL, or it was removed. `dropped`: lost on purpose. `failed`: the last retry failed, too.
   */
  state: 'pending' | 'delivered' | LostDelivery;
  /** True for the second copy of a delivery that was duplicated on purpose. */
  copyOf: number | null;
  /** Milliseconds since the Unix epoch. */
  createdAt: number;
  attempts: DeliveryAttempt[];
}

interface DeliveryAttempt {
  /** Milliseconds since the Unix epoch. */
  at: number;
  /** The signed timestamp header. */
  timestamp: string;
  status: number | null;
  error: string | null;
  durationMs: number;
}

/** Name of an event for the log; a body that is not JSON has none. */
export function eventTypeOf(body: string): string {
  try {
    const event: unknown = JSON.parse(body);
    const named = typeof event === 'object' && event !== null && 'eventType' in event ? event.eventType : undefined;
    return typeof named === 'string' ? named : 'none';
  } catch {
    return 'none';
  }
}
