import { randomUUID } from 'node:crypto';
import type { NestFastifyApplication } from '@nestjs/platform-fastify';
import type { ImportFile } from '../../harness/service.js';
import { AppModule } from '../../src/app.module.js';
import { Database } from '../../src/database/database.js';
import type { ImportRequest } from '../../src/imports/model/import.js';
import { ImportsService } from '../../src/imports/report/imports.service.js';
import { ImportRunner } from '../../src/imports/run/import-runner.service.js';
import { ImportUploads } from '../../src/imports/upload/import-uploads.service.js';
import { ADMIN_KEY } from './app.js';
import { startApp } from './start-app.js';

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
  const own = { PLATFORM_CONTRACT: 'simulator/contract.json', ROLES: 'api' };
  const { app, url } = await startApp(databaseUrl, { ...own, ...settings }, (env) => [AppModule.with(env)]);
  const imports = app.get(ImportsService);
  const database = app.get(Database);
  // The test takes the steps itself: one that got no connection in time would be an attempt more.
  for (const pool of [database.pool, database.bulkPool]) pool.options.connectionTimeoutMillis = 0;
  return {
    app,
    url,
    key: ADMIN_KEY,
    imports,
    database,
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
