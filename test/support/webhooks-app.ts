import { randomBytes } from 'node:crypto';
import { Injectable, Module } from '@nestjs/common';
import type { NestFastifyApplication } from '@nestjs/platform-fastify';
import { Test } from '@nestjs/testing';
import type pg from 'pg';
import { until } from '../../harness/until.js';
import { AccessModule } from '../../src/access/access.module.js';
import { ConfigModule } from '../../src/config/config.module.js';
import { type Env, validateEnv } from '../../src/config/env.js';
import { DatabaseModule } from '../../src/database/database.module.js';
import { HttpModule } from '../../src/http/server/metrics.js';
import { EVENT_TYPES } from '../../src/platform/contract/wire-types.js';
import { signWebhook } from '../../src/platform/webhook-signature.js';
import { prepareQueueStore } from '../../src/queue/backend/backend.js';
import { QueueModule } from '../../src/queue/queue.module.js';
import { httpAdapter, setupApp } from '../../src/setup.js';
import { VaultModule } from '../../src/vault/vault.module.js';
import {
  type EventHandler,
  type Handled,
  HandlesEvents,
  type InboxEvent,
} from '../../src/webhooks/process/event-handlers.js';
import { WebhooksModule, WebhooksWorkerModule } from '../../src/webhooks/webhooks.module.js';
import { startAgain } from './start-again.js';

export const ADMIN_KEY = 'admin-key-of-the-tests';
export const SECRET = 'webhook-secret-of-the-tests';

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
  const env = validateEnv({
    PLATFORM_BASE_URL: 'http://127.0.0.1:1',
    PLATFORM_API_KEY: 'platform-key',
    PLATFORM_WEBHOOK_SECRET: SECRET,
    ADMIN_API_KEY: ADMIN_KEY,
    DATABASE_URL: databaseUrl,
    DATA_KEYS: `k1:${Buffer.alloc(32, 7).toString('base64')}`,
    QUEUE_PREFIX: `test-${randomBytes(6).toString('hex')}`,
    ...settings,
  });
  await prepareQueueStore(env, databaseUrl);
  const app = await startAgain(() => listening(env, features));
  const handler = env.hasRole('worker') && features.includes(ScriptedFeature) ? app.get(ScriptedHandler) : undefined;
  const url = (await app.getUrl()).replace('[::1]', '127.0.0.1');
  return { app, url, handler: handler ?? new ScriptedHandler(), close: () => app.close() };
}

async function listening(env: Env, features: unknown[]): Promise<NestFastifyApplication> {
  const module = await Test.createTestingModule({
    imports: [
      ConfigModule.with(env),
      HttpModule,
      DatabaseModule,
      VaultModule,
      QueueModule,
      AccessModule,
      WebhooksModule,
      ...(env.hasRole('worker') ? [WebhooksWorkerModule, ...(features as [])] : []),
    ],
  }).compile();
  const app = module.createNestApplication<NestFastifyApplication>(httpAdapter(), { logger: false });
  await setupApp(app);
  try {
    await app.listen(0, '127.0.0.1');
  } catch (refusal) {
    await app.close();
    throw refusal;
  }
  return app;
}

/** A request as the platform signs it. */
export function signed(
  body: string | Buffer,
  { secret = SECRET, timestamp = String(Date.now()) } = {},
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
