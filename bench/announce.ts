import { randomUUID } from 'node:crypto';
import { signWebhook } from '../src/webhooks/receive/webhook-signature.js';

/**
 * Sends the platform's webhook that announces notes.
 *
 * @param secret signs the webhook
 * @param sessionId the platform's session id; a new session by default
 */
export async function announce(url: string, secret: string, sessionId: string = randomUUID()): Promise<void> {
  const eventType = 'SESSION_PROCESSING_NOTES_COMPLETED';
  const body = JSON.stringify({ eventType, sessionId, providerUserId: 'provider', aiNotesEnabled: true });
  const timestamp = String(Date.now());
  const headers = {
    'content-type': 'application/json',
    'x-service-timestamp': timestamp,
    'x-service-signature': signWebhook(secret, timestamp, Buffer.from(body)),
  };
  const response = await fetch(`${url}/webhooks/platform`, { method: 'POST', headers, body });
  if (response.status !== 204) throw new Error(`POST /webhooks/platform returned ${response.status}.`);
}
