import { createHmac } from 'node:crypto';
import type { FeedEventResponse } from '../../feed/feed.dto.js';

const SECRET_PREFIX = 'whsec_';

/** A message to an endpoint, in the format of Standard Webhooks. */
export interface Message {
  /** The header webhook-id, the same in every attempt. */
  id: string;
  body: string;
}

/** Makes a secret of random bytes, as Standard Webhooks writes it. */
export const newSecret = (bytes: Buffer): string => `${SECRET_PREFIX}${bytes.toString('base64')}`;

/** The message of an event: its ids and codes, no personal data. */
export function messageOf({ cursor, type, at, subject, data }: FeedEventResponse): Message {
  const body = { type, timestamp: at.toISOString(), data: { ...data, cursor, subject } };
  return { id: cursor, body: JSON.stringify(body) };
}

/** A message that tries out an endpoint. @param id unique */
export function testMessage(id: string, subject: string, now: Date): Message {
  const body = { type: 'subscription.test', timestamp: now.toISOString(), data: { subject } };
  return { id: `test-${id}`, body: JSON.stringify(body) };
}

/**
 * The headers of a message. Each secret signs `id.timestamp.body` with HMAC-SHA256 (Standard Webhooks, "Signature
 * scheme").
 *
 * @param secrets as `newSecret` makes them
 * @param now the time of the attempt
 */
export function headersOf({ id, body }: Message, secrets: readonly string[], now: Date): Record<string, string> {
  const timestamp = String(Math.floor(now.getTime() / 1_000));
  const signatures = secrets.map((secret) => {
    const key = Buffer.from(secret.slice(SECRET_PREFIX.length), 'base64');
    return `v1,${createHmac('sha256', key).update(`${id}.${timestamp}.${body}`).digest('base64')}`;
  });
  return { 'webhook-id': id, 'webhook-timestamp': timestamp, 'webhook-signature': signatures.join(' ') };
}
