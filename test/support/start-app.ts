import type { ModuleMetadata } from '@nestjs/common';
import type { NestFastifyApplication } from '@nestjs/platform-fastify';
import { Test } from '@nestjs/testing';
import { until } from '../../harness/until.js';
import { AccessModule } from '../../src/access/access.module.js';
import { ConfigModule } from '../../src/config/config.module.js';
import { type Env, validateEnv } from '../../src/config/env.js';
import { DatabaseModule } from '../../src/database/database.module.js';
import { isDatabaseUnavailable } from '../../src/http/problem/fault.js';
import { HttpModule } from '../../src/http/server/metrics.js';
import { prepareQueueStore } from '../../src/queue/backend/backend.js';
import { httpAdapter, setupApp } from '../../src/setup.js';
import { VaultModule } from '../../src/vault/vault.module.js';
import { testSettings } from './app.js';

/** What every part of the service stands on. */
export const baseOf = (env: Env) => [ConfigModule.with(env), HttpModule, DatabaseModule, VaultModule, AccessModule];

/**
 * Starts a part of the service in this process; again when a slow machine's database was late, as whoever keeps a
 * service running would.
 */
export async function startApp(
  databaseUrl: string,
  settings: Record<string, string | undefined>,
  modules: (env: Env) => ModuleMetadata['imports'],
): Promise<{ app: NestFastifyApplication; url: string; env: Env }> {
  const env = validateEnv({ ...testSettings(databaseUrl), ...settings });
  await prepareQueueStore(env, databaseUrl);
  const app = await until('the app is started', async () => {
    const module = await Test.createTestingModule({ imports: modules(env) }).compile();
    const made = module.createNestApplication<NestFastifyApplication>(httpAdapter(env), {
      logger: false,
    });
    await setupApp(made);
    try {
      await made.listen(0, '127.0.0.1');
      return made;
    } catch (refusal) {
      await made.close();
      if (isDatabaseUnavailable(refusal)) return undefined;
      throw refusal;
    }
  });
  return { app, url: (await app.getUrl()).replace('[::1]', '127.0.0.1'), env };
}
