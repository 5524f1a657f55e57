import { randomBytes } from 'node:crypto';
import { mkdtemp, readFile, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import type { NestFastifyApplication } from '@nestjs/platform-fastify';
import { Test } from '@nestjs/testing';
import { DEFAULT_API_KEY, type Simulator } from '../../simulator/app.js';
import { AccessModule } from '../../src/access/access.module.js';
import { ComplianceModule, ComplianceWorkerModule } from '../../src/compliance/compliance.module.js';
import { ConfigModule } from '../../src/config/config.module.js';
import { validateEnv } from '../../src/config/env.js';
import { DatabaseModule } from '../../src/database/database.module.js';
import { FeedModule } from '../../src/feed/feed.module.js';
import { HttpModule } from '../../src/http/server/metrics.js';
import { OperationsModule } from '../../src/operations/operations.module.js';
import { PeopleModule } from '../../src/people/people.module.js';
import { PlatformModule } from '../../src/platform/platform.module.js';
import { prepareQueueStore } from '../../src/queue/backend/backend.js';
import { QueueModule } from '../../src/queue/queue.module.js';
import { RecordingsModule } from '../../src/recordings/recordings.module.js';
import { SessionsModule, SessionsWorkerModule } from '../../src/sessions/sessions.module.js';
import { httpAdapter, setupApp } from '../../src/setup.js';
import { VaultModule } from '../../src/vault/vault.module.js';
import { WebhooksModule, WebhooksWorkerModule } from '../../src/webhooks/webhooks.module.js';
import { startAgain } from './start-again.js';

export const ADMIN_KEY = 'admin-key-of-the-tests';

/** Milliseconds after which a request that the database had no time for is sent again, as a caller should. */
const AGAIN_MS = 500;

const ROOMS = [HttpModule, DatabaseModule, VaultModule, QueueModule, AccessModule, FeedModule, PlatformModule];
const FEATURES = [WebhooksModule, PeopleModule, SessionsModule, RecordingsModule, ComplianceModule, OperationsModule];
const WORKERS = [WebhooksWorkerModule, SessionsWorkerModule, ComplianceWorkerModule];

export interface Answer {
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

/**
 * A contract file with the platform's operations that the simulator has, but for those left out.
 *
 * @param without operations, or other parts of the file such as `events`
 * @param changes parts of operations that are other than the simulator's own contract says
 */
export async function contractFile(without: string[] = [], changes: Record<string, object> = {}): Promise<string> {
  const source = path.resolve(__dirname, '../../simulator/contract.json');
  const contract = JSON.parse(await readFile(source, 'utf8'));
  for (const name of without) {
    delete contract.operations[name];
    delete contract[name];
  }
  for (const [operation, change] of Object.entries(changes)) Object.assign(contract.operations[operation], change);
  const file = path.join(await mkdtemp(path.join(tmpdir(), 'notebridge-contract-')), 'contract.json');
  await writeFile(file, JSON.stringify(contract));
  return file;
}

/** The way of a session: receiver, inbox, sessions with their worker, against a simulator that sends its webhooks here. */
export async function startSessions(
  simulator: Simulator,
  databaseUrl: string,
  settings: Record<string, string> = {},
): Promise<SessionsApp> {
  const env = validateEnv({
    PLATFORM_BASE_URL: simulator.url,
    PLATFORM_API_KEY: DEFAULT_API_KEY,
    PLATFORM_WEBHOOK_SECRET: simulator.state.settings.webhookSecret,
    ADMIN_API_KEY: ADMIN_KEY,
    DATABASE_URL: databaseUrl,
    DATA_KEYS: `k1:${Buffer.alloc(32, 7).toString('base64')}`,
    QUEUE_PREFIX: `test-${randomBytes(6).toString('hex')}`,
    ...settings,
  });
  await prepareQueueStore(env, databaseUrl);
  const app = await startAgain(async () => {
    const module = await Test.createTestingModule({
      imports: [ConfigModule.with(env), ...ROOMS, ...FEATURES, ...WORKERS],
    }).compile();
    const made = module.createNestApplication<NestFastifyApplication>(httpAdapter(), { logger: false });
    await setupApp(made);
    await made.listen(0, '127.0.0.1');
    return made;
  });
  const url = (await app.getUrl()).replace('[::1]', '127.0.0.1');
  simulator.state.settings = { ...simulator.state.settings, webhookUrl: `${url}/webhooks/platform` };
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
      if (response.status === 503 && text.includes('problem:database-unavailable')) {
        await delay(AGAIN_MS);
        return service.call(method, where, { body, accept, wait, idempotencyKey });
      }
      return { status: response.status, headers: response.headers, text, json: () => JSON.parse(text) };
    },
  };
  return service;
}
