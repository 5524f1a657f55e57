import type { LoggerService } from '@nestjs/common';
import { type LoggerOptions, type Logger as Pino, stdSerializers } from 'pino';

type Level = 'trace' | 'debug' | 'info' | 'warn' | 'error' | 'fatal';

/** Members that no log line should ever have; a belt, for code that logs them is at fault already. */
const NEVER = [
  'authorization',
  'apiKey',
  'key',
  'token',
  'otpToken',
  'sessionToken',
  'secret',
  'password',
  'email',
  'firstName',
  'lastName',
  'inviteUrl',
  'text',
  'body',
  'headers',
  'url',
  'query',
];

/**
 * Options of the one pino that Nest and Fastify share.
 *
 * @param level as LOG_LEVEL
 */
export function pinoOptions(level: string): LoggerOptions {
  return {
    level,
    base: undefined,
    timestamp: () => `,"time":"${new Date().toISOString()}"`,
    formatters: { level: (label) => ({ level: label }) },
    redact: { paths: NEVER.flatMap((name) => [name, `*.${name}`, `*.*.${name}`]), censor: '[redacted]' },
    // An error's own members may hold anything (a request's configuration, a row): its kind and place are enough.
    serializers: { err: ({ type, message, stack }) => ({ type, message, stack }), req: () => undefined },
  };
}

/** What Nest tells of at every start, a line for each module and route: for whoever debugs the start. */
const OF_THE_FRAMEWORK = new Set([
  'NestFactory',
  'NestApplication',
  'InstanceLoader',
  'RoutesResolver',
  'RouterExplorer',
]);

/** What logs an error that ends the start; whoever started hears its sentence from `main`. */
const OF_A_REFUSED_START = 'ExceptionHandler';

/** Nest's LoggerService over a pino instance: the same one that Fastify logs with. */
export class PinoLogger implements LoggerService {
  constructor(private readonly pino: Pino) {}

  log(message: unknown, ...rest: unknown[]): void {
    this.write(OF_THE_FRAMEWORK.has(rest.at(-1) as string) ? 'debug' : 'info', message, rest);
  }

  error(message: unknown, ...rest: unknown[]): void {
    this.write(rest.at(-1) === OF_A_REFUSED_START ? 'debug' : 'error', message, rest);
  }

  warn(message: unknown, ...rest: unknown[]): void {
    this.write('warn', message, rest);
  }

  debug(message: unknown, ...rest: unknown[]): void {
    this.write('debug', message, rest);
  }

  verbose(message: unknown, ...rest: unknown[]): void {
    this.write('trace', message, rest);
  }

  fatal(message: unknown, ...rest: unknown[]): void {
    this.write('fatal', message, rest);
  }

  /** Nest hands over `(message, stack?, context?)`. */
  private write(level: Level, message: unknown, rest: unknown[]): void {
    const context = typeof rest.at(-1) === 'string' ? (rest.at(-1) as string) : undefined;
    const stack = rest.length > 1 && typeof rest[0] === 'string' ? rest[0] : undefined;
    if (message instanceof Error) this.pino[level]({ context, err: stdSerializers.err(message) });
    else if (typeof message === 'object' && message !== null) this.pino[level]({ context, stack, ...message });
    else this.pino[level]({ context, stack }, String(message));
  }
}
