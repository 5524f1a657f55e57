import { setTimeout as delay } from 'node:timers/promises';
import type { NestFastifyApplication } from '@nestjs/platform-fastify';
import { DEFAULT_API_KEY, type Simulator } from '../../simulator/app.js';
import { ComplianceModule, ComplianceWorkerModule } from '../../src/compliance/compliance.module.js';
import { ConsoleModule } from '../../src/console/console.module.js';
import { FeedModule } from '../../src/feed/feed.module.js';
import { OperationsModule } from '../../src/operations/operations.module.js';
import { PeopleModule } from '../../src/people/people.module.js';
import { PlatformModule } from '../../src/platform/platform.module.js';
import { QueueModule } from '../../src/queue/queue.module.js';
import { RecordingsModule } from '../../src/recordings/recordings.module.js';
import { SessionsModule, SessionsWorkerModule } from '../../src/sessions/sessions.module.js';
import { WebhooksModule, WebhooksWorkerModule } from '../../src/webhooks/webhooks.module.js';
import { ADMIN_KEY } from './app.js';
import { baseOf, startApp } from './start-app.js';

/** Milliseconds after which a request that the database had no time for is sent again, as a caller should. */
const AGAIN_MS = 500;

const FEATURES = [
  QueueModule,
  FeedModule,
  PlatformModule,
  WebhooksModule,
  PeopleModule,
  SessionsModule,
  RecordingsModule,
  ComplianceModule,
  OperationsModule,
  ConsoleModule,
];
const WORKERS = [WebhooksWorkerModule, SessionsWorkerModule, ComplianceWorkerModule];

interface Answer {
  status: number;
  headers: Headers;
  text: string;
  /** The body as JSON; throws where it is none. */
  json<Body = Record<string, unknown>>(): Body;
}

export interface CallOptions {
  body?: unknown;
  accept?: string;
  /** Seconds (Prefer: wait). */
  wait?: number;
  idempotencyKey?: string;
}

export interface SessionsApp {
  app: NestFastifyApplication;
  url: string;
  call(method: string, path: string, options?: CallOptions): Promise<Answer>;
  close(): Promise<void>;
}

/** The way of a session: receiver, inbox, sessions with their worker, against a simulator that sends its webhooks here. */
export async function startSessions(
  simulator: Simulator,
  databaseUrl: string,
  settings: Record<string, string> = {},
): Promise<SessionsApp> {
  const { state } = simulator;
  const platform = {
    PLATFORM_BASE_URL: simulator.url,
    PLATFORM_API_KEY: DEFAULT_API_KEY,
    PLATFORM_WEBHOOK_SECRET: state.settings.webhookSecret,
  };
  const { app, url } = await startApp(databaseUrl, { ...platform, ...settings }, (env) => [
    ...baseOf(env),
    ...FEATURES,
    ...WORKERS,
  ]);
  state.settings = { ...state.settings, webhookUrl: `${url}/webhooks/platform` };
  const service: SessionsApp = {
    app,
    url,
    close: () => app.close(),
    async call(method, where, { body, accept, wait, idempotencyKey } = {}) {
      const response = await fetch(`${url}${where}`, {
        method,
        headers: {
          authorization: `Bearer ${ADMIN_KEY}`,
          ...(accept && { accept }),
          ...(wait !== undefined && { prefer: `wait=${wait}` }),
          ...(idempotencyKey && { 'idempotency-key': idempotencyKey }),
          ...(body !== undefined && { 'content-type': 'application/json' }),
        },
        body: body === undefined ? undefined : JSON.stringify(body),
      });
      const text = await response.text();
      if (response.status === 503 && /problem:(database|audit)-unavailable/.test(text)) {
        await delay(AGAIN_MS);
        return service.call(method, where, { body, accept, wait, idempotencyKey });
      }
      return { status: response.status, headers: response.headers, text, json: () => JSON.parse(text) };
    },
  };
  return service;
}
