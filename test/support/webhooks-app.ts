import { Injectable, Module } from '@nestjs/common';
import type { NestFastifyApplication } from '@nestjs/platform-fastify';
import type pg from 'pg';
import { EVENT_TYPES } from '../../src/platform/contract/wire-types.js';
import { QueueModule } from '../../src/queue/queue.module.js';
import {
  type EventHandler,
  type Handled,
  HandlesEvents,
  type InboxEvent,
} from '../../src/webhooks/process/event-handlers.js';
import { WebhooksModule, WebhooksWorkerModule } from '../../src/webhooks/webhooks.module.js';
import { baseOf, startApp } from './start-app.js';

/** Handles every event type as a test says. */
@Injectable()
@HandlesEvents(...EVENT_TYPES)
class ScriptedHandler implements EventHandler {
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
