import { until } from '../../harness/until.js';
import type { InboxEvent } from '../../src/webhooks/process/event-handlers.js';
import { signWebhook } from '../../src/webhooks/receive/webhook-signature.js';
import { WEBHOOK_SECRET } from './app.js';

/** A request that is signed like the platform's. */
export function signed(
  body: string | Buffer,
  { secret = WEBHOOK_SECRET, timestamp = String(Date.now()) } = {},
): { method: 'POST'; headers: Record<string, string>; body: Uint8Array<ArrayBuffer> } {
  const bytes = Buffer.from(body);
  return {
    method: 'POST',
    headers: {
      'content-type': 'application/json',
      'user-agent': 'Service Webhook',
      'x-service-timestamp': timestamp,
      'x-service-signature': signWebhook(secret, timestamp, bytes),
    },
    body: new Uint8Array(bytes),
  };
}

/** A session event in the form of the spec. */
export function sessionEvent(sessionId: string, eventType = 'SESSION_PROCESSING_NOTES_COMPLETED'): string {
  return JSON.stringify({ eventType, sessionId, providerUserId: 'p-1', aiNotesEnabled: true });
}

/** The session of an event; `none` if it names none. */
export const sessionOf = (event: InboxEvent): string => ('sessionId' in event && event.sessionId) || 'none';

/** Sends a request, and retries after a 503, as a caller should: a slow machine's database may be late. */
export function answerTo(url: string, init: RequestInit): Promise<Response> {
  return until('the request gets an answer other than 503', async () => {
    const response = await fetch(url, init);
    if (response.status !== 503) return response;
    await response.arrayBuffer();
    return undefined;
  });
}

/** Sends a delivery as the platform does. */
export const deliver = ({ url }: { url: string }, init: RequestInit): Promise<Response> =>
  answerTo(`${url}/webhooks/platform`, init);
