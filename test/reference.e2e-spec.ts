import { readFileSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import type { NestFastifyApplication } from '@nestjs/platform-fastify';
import { Test } from '@nestjs/testing';
import { AppModule } from '../src/app.module.js';
import { validateEnv } from '../src/config/env.js';
import { Metrics } from '../src/http/server/metrics.js';
import { httpAdapter, openApiDocument, setupApp } from '../src/setup.js';
import { testSettings } from './support/app.js';
import { freshDatabase, type TestDatabase } from './support/databases.js';
import { contractPage } from './support/reference/contract.js';
import { problemsPage } from './support/reference/problems.js';
import { eventsPage, metricsPage, operationsPage } from './support/reference/service-pages.js';
import { settingsPage } from './support/reference/settings.js';

let database: TestDatabase;
let app: NestFastifyApplication;

/** The whole service is put together, and not started. */
beforeAll(async () => {
  database = await freshDatabase();
  const contract = { PLATFORM_CONTRACT: path.resolve('simulator/contract.json') };
  const env = validateEnv({ ...testSettings(database.url), ...contract });
  const module = await Test.createTestingModule({ imports: [AppModule.with(env)] }).compile();
  app = module.createNestApplication<NestFastifyApplication>(httpAdapter(env), { logger: false });
  await setupApp(app);
});
afterAll(async () => {
  await app?.close();
  await database?.drop();
});

const PAGES: Record<string, () => string> = {
  settings: settingsPage,
  contract: contractPage,
  problems: problemsPage,
  events: eventsPage,
  operations: () => operationsPage(openApiDocument(app)),
  metrics: () => metricsPage(app.get(Metrics).registry.getMetricsAsArray()),
};

test.each(Object.keys(PAGES))('docs/reference/%s.md says what the code says; npm run reference writes it', (name) => {
  const file = `docs/reference/${name}.md`;
  const page = PAGES[name]?.() ?? '';
  if (process.env.WRITE_REFERENCE) writeFileSync(file, page);
  expect(readFileSync(file, 'utf8')).toBe(page);
});
