import { randomBytes, randomUUID } from 'node:crypto';
import type { NestFastifyApplication } from '@nestjs/platform-fastify';
import { Test } from '@nestjs/testing';
import type { ImportFile } from '../../harness/service.js';
import type { Principal } from '../../src/access/identity/scopes.js';
import { AppModule } from '../../src/app.module.js';
import { validateEnv } from '../../src/config/env.js';
import { Database } from '../../src/database/database.js';
import type { ImportRequest } from '../../src/imports/model/import.js';
import { ImportsService } from '../../src/imports/report/imports.service.js';
import { ImportRunner } from '../../src/imports/run/import-runner.service.js';
import { ImportUploads } from '../../src/imports/upload/import-uploads.service.js';
import { prepareQueueStore } from '../../src/queue/backend/backend.js';
import { httpAdapter, setupApp } from '../../src/setup.js';
import { startAgain } from './start-again.js';

const KEY = 'admin-key-of-the-tests';

/** Whoever holds that key. */
export const ADMIN = { id: 'admin', name: 'admin', scopes: [] } as unknown as Principal;

/** The service in this process, whose imports take their steps when the test says so and at no other time. */
export interface ImportsApp {
  readonly app: NestFastifyApplication;
  readonly url: string;
  /** Opens its routes. */
  readonly key: string;
  readonly database: Database;
  readonly imports: ImportsService;
  readonly steps: ImportRunner;
  /** Reads files as one import. @returns its id */
  stage(request: Partial<ImportRequest>, files: readonly ImportFile[]): Promise<string>;
  close(): Promise<void>;
}

/** Starts it on a database of the test's own; nothing is sent, since nobody works on what is wanted. */
export async function startImports(databaseUrl: string, settings: Record<string, string> = {}): Promise<ImportsApp> {
  const env = validateEnv({
    PLATFORM_BASE_URL: 'http://127.0.0.1:1',
    PLATFORM_API_KEY: 'nobody-listens-there',
    PLATFORM_WEBHOOK_SECRET: 'secret-of-the-tests',
    PLATFORM_CONTRACT: 'simulator/contract.json',
    ADMIN_API_KEY: KEY,
    DATABASE_URL: databaseUrl,
    DATA_KEYS: `k1:${Buffer.alloc(32, 7).toString('base64')}`,
    QUEUE_PREFIX: `test-${randomBytes(6).toString('hex')}`,
    ROLES: 'api',
    ...settings,
  });
  await prepareQueueStore(env, databaseUrl);
  const app = await startAgain(async () => {
    const module = await Test.createTestingModule({ imports: [AppModule.with(env)] }).compile();
    const made = module.createNestApplication<NestFastifyApplication>(httpAdapter(), { logger: false });
    await setupApp(made);
    await made.listen(0, '127.0.0.1');
    return made;
  });
  const imports = app.get(ImportsService);
  return {
    app,
    url: (await app.getUrl()).replace('[::1]', '127.0.0.1'),
    key: KEY,
    imports,
    database: app.get(Database),
    steps: app.get(ImportRunner),
    close: () => app.close(),
    async stage(request, files) {
      const id = randomUUID();
      const whole: ImportRequest = {
        kind: 'clients',
        mode: 'upsert',
        dryRun: false,
        idSystems: [],
        createdBy: 'test',
        ...request,
      };
      await app.get(ImportUploads).create(id, whole, uploaded(files));
      return id;
    },
  };
}

async function* uploaded(files: readonly ImportFile[]) {
  for (const { name, type, content } of files) {
    const field = name.startsWith('providers') ? 'providers' : 'clients';
    yield { name, field, mediaType: type, content: chunksOf(content) };
  }
}

async function* chunksOf(text: ImportFile['content']): AsyncGenerator<Buffer> {
  yield Buffer.from(text as string);
}
