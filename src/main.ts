import './tracing/instrument.js'; // first, because it patches modules as they are loaded
import 'reflect-metadata';
import { setTimeout as delay } from 'node:timers/promises';
import { NestFactory } from '@nestjs/core';
import type { NestFastifyApplication } from '@nestjs/platform-fastify';
import { type Logger, pino } from 'pino';
import { AppModule } from './app.module.js';
import type { Env } from './config/env.js';
import { misspelledSettings, readEnv } from './config/env.validation.js';
import { Stopping } from './config/stopping.js';
import { PinoLogger, pinoOptions } from './pino-logger.js';
import { calledAddresses } from './platform/contract/addresses.js';
import { Contract } from './platform/contract/contract.js';
import { prepare } from './prepare.js';
import { httpAdapter, setupApp } from './setup.js';
import { startTracing } from './tracing/start-tracing.js';

/** The purpose of this process. @throws {Error} for an unknown argument, because a misspelt one would be ignored */
function taskOf([task, ...more]: readonly string[]): 'serve' | 'migrate' {
  const unknown = task === undefined || task === 'migrate' ? more[0] : task;
  if (unknown !== undefined)
    throw new Error(
      `Unknown argument ${unknown.split('=')[0]}. Use migrate, or none; settings are in the environment.`,
    );
  return task === 'migrate' ? 'migrate' : 'serve';
}

async function main(): Promise<void> {
  const task = taskOf(process.argv.slice(2));
  const env = readEnv();
  const misspelled = misspelledSettings();
  const { notes, warnings } = await prepare(env, task).catch((error: Error) => {
    throw new Error([error.message, ...misspelled].join('\n'), { cause: error });
  });
  warnings.push(...misspelled);
  if (task === 'migrate') {
    for (const line of [...notes, ...warnings]) process.stdout.write(`${line}\n`);
    return;
  }
  const logger = pino(pinoOptions(env.LOG_LEVEL));
  for (const note of notes) logger.info(note);
  for (const warning of warnings) logger.warn(warning);
  const stopTracing = await startTracing(env, (sentence) => logger.warn(sentence));
  const app = await NestFactory.create<NestFastifyApplication>(AppModule.with(env), httpAdapter(env), {
    logger: new PinoLogger(logger),
    abortOnError: false,
  });
  await setupApp(app);
  logAddresses(logger, app.get(Contract), env);
  stopOnSignal(logger, env.shutdownDeadlineMs, () =>
    drain(app, env)
      .then(() => stop(app))
      .then(stopTracing),
  );
  await listen(app, env);
  logger.info({ address: await app.getUrl(), roles: env.ROLES, ready: true }, 'notebridge is ready');
}

/** By now the workers run: what they have begun ends before the process does. */
async function listen(app: NestFastifyApplication, { HOST: host, PORT: port }: Env): Promise<void> {
  try {
    await app.listen(port, host);
  } catch (error) {
    await stop(app);
    const { message, syscall } = error as NodeJS.ErrnoException;
    if (syscall !== 'listen' && syscall !== 'getaddrinfo') throw error;
    const detail = 'Set HOST to an address of this machine, and PORT to a free port that this user may listen on.';
    throw new Error(`The server cannot listen (${message}). ${detail}`, { cause: error });
  }
}

/** Reports `stopping` to load balancers, and keeps serving until they have noticed. */
async function drain(app: NestFastifyApplication, { SHUTDOWN_DELAY_SECONDS: seconds }: Env): Promise<void> {
  app.get(Stopping).startDraining();
  if (seconds > 0) await delay(seconds * 1_000);
}

/**
 * Finishes work in progress and starts none. The listener closes first, while everything that answers requests still
 * works; workers may take as long as a call to the platform.
 */
async function stop(app: NestFastifyApplication): Promise<void> {
  app.get(Stopping).startShutdown();
  await app.getHttpAdapter().close();
  await app.close();
}

const WITHOUT_CONTRACT =
  'PLATFORM_CONTRACT is not set, so the service calls nothing but initiateAuth. See docs/connect-the-platform.md.';

/** Logs complete URLs, because they show a wrong base URL immediately. */
function logAddresses(
  logger: Logger,
  contract: Contract,
  { PLATFORM_BASE_URL: base, PLATFORM_CONTRACT: file }: Env,
): void {
  const { addresses, warnings } = calledAddresses(contract, base);
  const operations = Object.fromEntries(addresses.map(({ operation, method, url }) => [operation, `${method} ${url}`]));
  logger.info({ operations }, 'the platform is called at these URLs');
  for (const warning of warnings) logger.warn(warning);
  if (file === undefined) logger.warn(WITHOUT_CONTRACT);
}

/** Stops once, even if the signal repeats: a terminal sends it twice to a group of processes. */
function stopOnSignal(logger: Logger, deadlineMs: number, stop: () => Promise<void>): void {
  let stopping = false;
  const begin = (signal: NodeJS.Signals) => {
    if (stopping) return;
    stopping = true;
    logger.info({ signal }, 'stopping');
    setTimeout(() => process.exit(1), deadlineMs).unref();
    void stop().then(() => process.exit(0));
  };
  for (const signal of ['SIGINT', 'SIGTERM'] as const) process.on(signal, begin);
}

main().catch((error: unknown) => {
  process.stderr.write(`${error instanceof Error ? error.message : 'notebridge could not start'}\n`);
  process.exit(1);
});
