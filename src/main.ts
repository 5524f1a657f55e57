import 'reflect-metadata';
import { NestFactory } from '@nestjs/core';
import type { NestFastifyApplication } from '@nestjs/platform-fastify';
import { type Logger, pino } from 'pino';
import { AppModule } from './app.module.js';
import { type Env, readEnv } from './config/env.js';
import { listenFault } from './http/listen-fault.js';
import { PinoLogger, pinoOptions } from './pino-logger.js';
import { prepare } from './prepare.js';
import { httpAdapter, setupApp } from './setup.js';

/** Milliseconds that a shutdown may take before the process leaves; BullMQ's own close never times out. */
const SHUTDOWN_DEADLINE_MS = 15_000;

async function main(): Promise<void> {
  const { env, notes, release } = await prepare(readEnv());
  if (process.argv[2] === 'migrate') return release();
  const logger = pino(pinoOptions(env.LOG_LEVEL));
  for (const note of notes) logger.info(note);
  try {
    const app = await NestFactory.create<NestFastifyApplication>(AppModule.with(env), httpAdapter(), {
      logger: new PinoLogger(logger),
      abortOnError: false,
    });
    await setupApp(app);
    stopOnSignal(logger, () => app.close().then(release));
    await listen(app, env);
    logger.info({ address: await app.getUrl(), roles: env.ROLES, ready: true }, 'notebridge is ready');
  } catch (error) {
    await release();
    throw error;
  }
}

/** By now the workers run: what they have begun ends before the process does. */
async function listen(app: NestFastifyApplication, { HOST: host, PORT: port }: Env): Promise<void> {
  try {
    await app.listen(port, host);
  } catch (error) {
    await app.close();
    const sentence = listenFault(error, { host, port });
    throw sentence ? new Error(sentence, { cause: error }) : error;
  }
}

/** Stops once, however often the signal comes: a group of processes gets it twice from a terminal. */
function stopOnSignal(logger: Logger, stop: () => Promise<void>): void {
  let stopping = false;
  const begin = (signal: NodeJS.Signals) => {
    if (stopping) return;
    stopping = true;
    logger.info({ signal }, 'stopping');
    setTimeout(() => process.exit(1), SHUTDOWN_DEADLINE_MS).unref();
    void stop().then(() => process.exit(0));
  };
  for (const signal of ['SIGINT', 'SIGTERM'] as const) process.on(signal, begin);
}

main().catch((error: unknown) => {
  process.stderr.write(`${error instanceof Error ? error.message : 'notebridge could not start'}\n`);
  process.exit(1);
});
