import { Injectable, Module } from '@nestjs/common';
import type { NestFastifyApplication } from '@nestjs/platform-fastify';
import type pg from 'pg';
import { until } from '../../harness/until.js';
import { EVENT_TYPES } from '../../src/platform/contract/wire-types.js';
import { signWebhook } from '../../src/platform/webhook-signature.js';
import { QueueModule } from '../../src/queue/queue.module.js';
import {
  type EventHandler,
  type Handled,
  HandlesEvents,
  type InboxEvent,
} from '../../src/webhooks/process/event-handlers.js';
import { WebhooksModule, WebhooksWorkerModule } from '../../src/webhooks/webhooks.module.js';
import { baseOf, startApp, WEBHOOK_SECRET } from './app.js';

/** Handles every event type as a test says. */
@Injectable()
@HandlesEvents(...EVENT_TYPES)
export class ScriptedHandler implements EventHandler {
  readonly seen: InboxEvent[] = [];
  commits = 0;
  script: (event: InboxEvent, tx: pg.PoolClient) => Promise<Handled> = async () => 'processed';

  handle(event: InboxEvent, tx: pg.PoolClient): Promise<Handled> {
    this.seen.push(event);
    return this.script(event, tx);
  }

  afterCommit(): void {
    this.commits += 1;
  }
}

@Module({ providers: [ScriptedHandler] })
export class ScriptedFeature {}

export interface WebhooksApp {
  app: NestFastifyApplication;
  url: string;
  handler: ScriptedHandler;
  close(): Promise<void>;
}

/** The receiver, the inbox and the dispatch, with a handler that tests script. */
export async function startWebhooks(
  databaseUrl: string,
  settings: Record<string, string> = {},
  features: unknown[] = [ScriptedFeature],
): Promise<WebhooksApp> {
  const { app, url, env } = await startApp(databaseUrl, settings, (env) => [
    ...baseOf(env),
    QueueModule,
    WebhooksModule,
    ...(env.hasRole('worker') ? [WebhooksWorkerModule, ...(features as [])] : []),
  ]);
  const handler = env.hasRole('worker') && features.includes(ScriptedFeature) ? app.get(ScriptedHandler) : undefined;
  return { app, url, handler: handler ?? new ScriptedHandler(), close: () => app.close() };
}

/** A request as the platform signs it. */
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

/** A session event as the spec shapes it. */
export function sessionEvent(sessionId: string, eventType = 'SESSION_PROCESSING_NOTES_COMPLETED'): string {
  return JSON.stringify({ eventType, sessionId, providerUserId: 'p-1', aiNotesEnabled: true });
}

/** Sends a request, and again while it is answered 503, as a caller should: a slow machine's database may be late. */
export function answerTo(url: string, init: RequestInit): Promise<Response> {
  return until('the request is answered for good', async () => {
    const response = await fetch(url, init);
    if (response.status !== 503) return response;
    await response.arrayBuffer();
    return undefined;
  });
}

/** Sends a delivery as the platform does. */
export const deliver = ({ url }: Pick<WebhooksApp, 'url'>, init: RequestInit): Promise<Response> =>
  answerTo(`${url}/webhooks/platform`, init);
