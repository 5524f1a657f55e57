// Compares client/schema.ts with the API that the compiled service describes.
import { readFileSync } from 'node:fs';
import { createRequire } from 'node:module';

const require = createRequire(import.meta.url);

const key = (id) => `${id}:${Buffer.alloc(32, 1).toString('base64')}`;

/** The settings that the service needs in addition to its database. It makes no calls, because it is not started. */
const SETTINGS = {
  PLATFORM_BASE_URL: 'http://127.0.0.1:9',
  PLATFORM_API_KEY: 'none',
  PLATFORM_WEBHOOK_SECRET: 'none',
  ADMIN_API_KEY: 'off',
  DATA_KEYS: key('d'),
  FINGERPRINT_KEYS: key('f'),
  AUDIT_KEYS: key('a'),
};

/** A sentence if the types of the client are not those of the API. Empty if they agree. */
export async function findStaleClientTypes(url) {
  const { clientSchema } = require('../dist/harness/client-schema.js');
  const current = await clientSchema(await describedApi(url));
  const isSame = readFileSync(new URL('../client/schema.ts', import.meta.url), 'utf8') === current;
  return isSame ? '' : 'client/schema.ts differs from the API: run npm run reference.';
}

/** The OpenAPI description of the service. @param databaseUrl of a database with every migration */
async function describedApi(databaseUrl) {
  require('reflect-metadata');
  const { NestFactory } = require('@nestjs/core');
  const { AppModule } = require('../dist/src/app.module.js');
  const { validateEnv } = require('../dist/src/config/env.validation.js');
  const { httpAdapter, openApiDocument, setupApp } = require('../dist/src/setup.js');
  const env = validateEnv({ ...SETTINGS, DATABASE_URL: databaseUrl });
  const app = await NestFactory.create(AppModule.with(env), httpAdapter(env), { logger: false, abortOnError: false });
  try {
    return openApiDocument(await setupApp(app));
  } finally {
    await app.close();
  }
}
