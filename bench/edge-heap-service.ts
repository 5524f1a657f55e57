// The whole service in a process that answers each message with the bytes of its heap once all garbage is collected.
import 'reflect-metadata';
import { setTimeout as delay } from 'node:timers/promises';
import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import { NestFactory } from '@nestjs/core';
import type { NestFastifyApplication } from '@nestjs/platform-fastify';
import { AppModule } from '../src/app.module.js';
import { readEnv } from '../src/config/env.js';
import { prepare } from '../src/prepare.js';
import { httpAdapter, setupApp } from '../src/setup.js';

setFlagsFromString('--expose-gc');
const collect = runInNewContext('gc') as () => void;

/** What the closing of connections frees needs a second time. */
async function heapBytes(): Promise<number> {
  for (let times = 0; times < 3; times += 1) {
    collect();
    await delay(100);
  }
  return process.memoryUsage().heapUsed;
}

async function main(): Promise<void> {
  const { env, release } = await prepare(readEnv());
  const app = await NestFactory.create<NestFastifyApplication>(AppModule.with(env), httpAdapter(env), {
    logger: false,
  });
  await setupApp(app);
  await app.listen(0, '127.0.0.1');
  process.on('message', () => void heapBytes().then((heap) => process.send?.({ heap })));
  process.once(
    'SIGTERM',
    () =>
      void app
        .close()
        .then(release)
        .finally(() => process.exit(0)),
  );
  process.send?.({ url: await app.getUrl() });
}

void main();
